//! The parts of a module that read inputs by their strides.

use std::fmt::Write;

use crate::dtype::DType;
use crate::expr::wgsl::VectorWidth;
use crate::map::layout::{Layout, Pattern};
use crate::map::map::{INPUTS, Map, OUTPUTS};
use crate::map::map_input::MapInput;
use crate::shader::binding::Binding;
use crate::shader::names::names;

/// The names of the constants: the sizes of the layout's dimensions; the strides of an input; what the keys of its random numbers
/// are computed from, and the index of the first; its offset; and the distance between its elements within a group of four.
const SIZES: [&str; Map::MAX_DIMS] = ["SIZE0", "SIZE1", "SIZE2", "SIZE3", "SIZE4", "SIZE5"];
const STRIDES: [[&str; Map::MAX_DIMS]; Map::MAX_ARGS] =
    names!("X0" "X1" "X2" "X3" "X4" "X5" "X6" "X7", "_STRIDE0" "_STRIDE1" "_STRIDE2" "_STRIDE3" "_STRIDE4" "_STRIDE5");
const DRAWS: [[&str; 3]; Map::MAX_ARGS] = names!("X0" "X1" "X2" "X3" "X4" "X5" "X6" "X7", "_SEED_A" "_SEED_B" "_FIRST");
const PLACES: [[&str; 2]; Map::MAX_ARGS] = names!("X0" "X1" "X2" "X3" "X4" "X5" "X6" "X7", "_OFFSET" "_STEP");

/// The inputs of a kernel, and how many elements of each an invocation reads at a time.
pub(crate) struct Loads<'a> {
    pub(crate) inputs: &'a [MapInput],
    /// Its first patterns are those of the inputs.
    pub(crate) layout: &'a Layout,
    pub(crate) width: VectorWidth,
    /// The input that the output replaces, if any: its elements are those of `y0`.
    pub(crate) in_place: Option<usize>,
}

impl Loads<'_> {
    /// Whether all arguments that are as long as the outputs in the innermost dimension are bound in groups of four.
    pub(crate) fn in_fours(&self) -> bool {
        self.width == VectorWidth::Four
    }

    /// The inputs whose index differs from that of the output's element, with their offsets and strides.
    fn strided(&self) -> impl Iterator<Item = (usize, usize, &[usize])> {
        self.layout.patterns.iter().take(self.inputs.len()).enumerate().filter_map(|(input, pattern)| match pattern {
            Pattern::Strided { offset, strides } => Some((input, *offset, &strides[..])),
            Pattern::One | Pattern::All => None,
        })
    }

    /// Whether input `input` is indexed by groups of four elements rather than by elements.
    pub(crate) fn is_grouped(&self, input: usize) -> bool {
        self.in_fours()
            && self.inputs[input].draws.is_none()
            && match &self.layout.patterns[input] {
                Pattern::One => false,
                Pattern::All => true,
                Pattern::Strided { offset, strides } => match strides.split_last() {
                    Some((1, outer)) => outer.iter().chain([offset]).all(|n| n.is_multiple_of(4)),
                    _ => false,
                },
            }
    }

    /// Whether an invocation reads four elements of input `input` one by one.
    fn is_scattered(&self, input: usize) -> bool {
        let is_repeated = self.layout.patterns[input].strides().is_none_or(|strides| strides.last() == Some(&0));
        self.in_fours() && !self.is_grouped(input) && !is_repeated
    }

    /// The sizes and strides that the loads are specialised for.
    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = Vec::new();
        for (names, draws) in DRAWS.iter().zip(self.inputs).filter_map(|(names, input)| Some((names, input.draws?))) {
            let [a, b] = draws.seeds();
            constants.extend(names.iter().copied().zip([a, b, draws.first].map(f64::from)));
        }
        if self.strided().next().is_none() {
            return constants;
        }
        let n_dims = self.layout.sizes.len();
        for (dim, &size) in self.layout.sizes.iter().enumerate().skip(1) {
            let group = if self.in_fours() && dim + 1 == n_dims { 4 } else { 1 };
            constants.push((SIZES[dim], (size / group) as f64));
        }
        for (input, offset, strides) in self.strided() {
            let group = if self.is_grouped(input) { 4 } else { 1 };
            let is_scattered = self.is_scattered(input);
            for (dim, &stride) in strides.iter().enumerate() {
                // The index of the innermost dimension counts groups.
                let stride = if is_scattered && dim + 1 == n_dims { 4 * stride } else { stride };
                constants.extend((stride > 1).then_some((STRIDES[input][dim], stride.div_ceil(group) as f64)));
            }
            constants.extend((offset > 0).then_some((PLACES[input][0], (offset / group) as f64)));
            let step = strides.last().filter(|_| is_scattered);
            constants.extend(step.map(|step| (PLACES[input][1], *step as f64)));
        }
        constants
    }

    /// How each input that has a buffer of its own is bound.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = Binding> {
        let inputs = (0..self.inputs.len()).filter(|input| self.in_place != Some(*input));
        inputs.map(|input| binding(INPUTS[input], self.inputs[input].dtype, self.is_grouped(input)))
    }

    /// `fn load0(e: u32) -> V`, which takes the index of an invocation's first element, or of its group of four.
    pub(crate) fn load(&self, text: &mut String, input: usize) {
        let name = if self.in_place == Some(input) { OUTPUTS[0] } else { INPUTS[input] };
        if self.inputs[input].draws.is_some() {
            let [a, b, first] = DRAWS[input];
            let index = match self.width {
                VectorWidth::One => "e",
                VectorWidth::Two => "U(e, e + 1u)",
                VectorWidth::Four => "U(4u * e) + U(0u, 1u, 2u, 3u)",
            };
            let _ =
                writeln!(text, "fn load{input}(e: u32) -> V {{\n    return draw(U({first}) + {index}, {a}, {b}, {name}[1]);\n}}");
            return;
        }
        let dtype = self.inputs[input].dtype;
        self.index_function(text, input);
        let index = |e: &str| match &self.layout.patterns[input] {
            Pattern::One => "0u".to_owned(),
            Pattern::All => e.to_owned(),
            Pattern::Strided { .. } => format!("index{input}({e})"),
        };
        if self.is_grouped(input) {
            let index = index("e");
            let loaded = match dtype {
                DType::F32 => format!("{name}[{index}]"),
                dtype => format!("vec4f(unpack_{dtype}({name}[{index}].x), unpack_{dtype}({name}[{index}].y))"),
            };
            let _ = writeln!(text, "fn load{input}(e: u32) -> V {{\n    return {loaded};\n}}");
            return;
        }
        let element = match dtype {
            DType::F32 => format!("return {name}[i];"),
            dtype => format!("let v = unpack_{dtype}({name}[i / 2u]);\n    return select(v.x, v.y, (i & 1u) == 1u);"),
        };
        let _ = writeln!(text, "fn element{input}(i: u32) -> f32 {{\n    {element}\n}}");
        let element = |i: &str| format!("element{input}({i})");
        let loaded = match self.width {
            // With an odd number of elements the second does not exist; the value stored for it is padding.
            VectorWidth::Two => format!("V({}, {})", element(&index("e")), element(&index("min(e + 1u, N_ELEMENTS - 1u)"))),
            VectorWidth::Four if self.is_scattered(input) => {
                let step = PLACES[input][1];
                let _ = writeln!(text, "fn load{input}(e: u32) -> V {{\n    let i = {};", index("e"));
                let elements = ["i".to_owned(), format!("i + {step}"), format!("i + 2u * {step}"), format!("i + 3u * {step}")];
                let _ = writeln!(text, "    return V({});\n}}", elements.map(|i| element(&i)).join(", "));
                return;
            }
            VectorWidth::One | VectorWidth::Four => format!("V({})", element(&index("e"))),
        };
        let _ = writeln!(text, "fn load{input}(e: u32) -> V {{\n    return {loaded};\n}}");
    }

    /// `fn index0(e: u32) -> u32`: the index in a strided input of element `e` of the outputs.
    fn index_function(&self, text: &mut String, input: usize) {
        let Pattern::Strided { offset, strides } = &self.layout.patterns[input] else { return };
        let offset = if *offset > 0 { PLACES[input][0] } else { "0u" };
        let _ = writeln!(text, "fn index{input}(e: u32) -> u32 {{\n    var rest = e;\n    var index = {offset};");
        // Dimensions outside the outermost one that has a stride do not matter.
        let outermost = strides.iter().position(|stride| *stride != 0).unwrap_or(strides.len());
        for dim in (outermost..strides.len()).rev() {
            let coordinate = if dim == 0 { "rest".to_owned() } else { format!("rest % {}", SIZES[dim]) };
            let is_by_fours = self.is_scattered(input) && dim + 1 == strides.len();
            match strides[dim] {
                0 => {}
                1 if !is_by_fours => {
                    let _ = writeln!(text, "    index += {coordinate};");
                }
                _ => {
                    let _ = writeln!(text, "    index += ({coordinate}) * {};", STRIDES[input][dim]);
                }
            }
            if dim > outermost {
                let _ = writeln!(text, "    rest /= {};", SIZES[dim]);
            }
        }
        let _ = writeln!(text, "    return index;\n}}");
    }
}

/// An argument bound by single elements or by groups of four.
pub(crate) fn binding(name: &'static str, dtype: DType, is_grouped: bool) -> Binding {
    match is_grouped {
        true => Binding::of(name).elements(if dtype.is_half() { "vec2u" } else { "vec4f" }),
        false => Binding::of(name),
    }
}
