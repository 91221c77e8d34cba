//! The parts of a module that read broadcast inputs.

use std::fmt::Write;

use super::layout::{Layout, Pattern};
use super::map::{INPUTS, Map, MapInput};
use crate::DType;
use crate::expr::wgsl::Lanes;

/// The names of the constants: the sizes of the layout's dimensions, and the strides of an input.
const SIZES: [&str; Map::MAX_DIMS] = ["SIZE0", "SIZE1", "SIZE2", "SIZE3", "SIZE4", "SIZE5"];
const STRIDES: [[&str; Map::MAX_DIMS]; Map::MAX_ARGS] = [
    ["X0_STRIDE0", "X0_STRIDE1", "X0_STRIDE2", "X0_STRIDE3", "X0_STRIDE4", "X0_STRIDE5"],
    ["X1_STRIDE0", "X1_STRIDE1", "X1_STRIDE2", "X1_STRIDE3", "X1_STRIDE4", "X1_STRIDE5"],
    ["X2_STRIDE0", "X2_STRIDE1", "X2_STRIDE2", "X2_STRIDE3", "X2_STRIDE4", "X2_STRIDE5"],
    ["X3_STRIDE0", "X3_STRIDE1", "X3_STRIDE2", "X3_STRIDE3", "X3_STRIDE4", "X3_STRIDE5"],
    ["X4_STRIDE0", "X4_STRIDE1", "X4_STRIDE2", "X4_STRIDE3", "X4_STRIDE4", "X4_STRIDE5"],
    ["X5_STRIDE0", "X5_STRIDE1", "X5_STRIDE2", "X5_STRIDE3", "X5_STRIDE4", "X5_STRIDE5"],
    ["X6_STRIDE0", "X6_STRIDE1", "X6_STRIDE2", "X6_STRIDE3", "X6_STRIDE4", "X6_STRIDE5"],
    ["X7_STRIDE0", "X7_STRIDE1", "X7_STRIDE2", "X7_STRIDE3", "X7_STRIDE4", "X7_STRIDE5"],
];

/// The inputs of a kernel, and how many elements an invocation reads of each at a time.
pub(super) struct Loads<'a> {
    pub(super) inputs: &'a [MapInput],
    /// Its first patterns are those of the inputs.
    pub(super) layout: &'a Layout,
    pub(super) lanes: Lanes,
}

impl Loads<'_> {
    /// Whether all arguments that are as long as the outputs in the innermost dimension are bound as groups of four.
    pub(super) fn in_fours(&self) -> bool {
        self.lanes == Lanes::Four
    }

    fn strides(&self) -> impl Iterator<Item = (usize, &Vec<usize>)> {
        self.layout.patterns.iter().take(self.inputs.len()).enumerate().filter_map(|(input, pattern)| match pattern {
            Pattern::Strided(strides) => Some((input, strides)),
            Pattern::One | Pattern::All => None,
        })
    }

    /// Whether input `input` is indexed by groups of four elements rather than by elements.
    pub(super) fn is_grouped(&self, input: usize) -> bool {
        self.in_fours()
            && match &self.layout.patterns[input] {
                Pattern::One => false,
                Pattern::All => true,
                Pattern::Strided(strides) => strides.last() != Some(&0),
            }
    }

    /// The sizes and strides that the loads are specialised for.
    pub(super) fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = Vec::new();
        if self.strides().next().is_none() {
            return constants;
        }
        let n_dims = self.layout.sizes.len();
        for (dim, &size) in self.layout.sizes.iter().enumerate().skip(1) {
            let group = if self.in_fours() && dim + 1 == n_dims { 4 } else { 1 };
            constants.push((SIZES[dim], (size / group) as f64));
        }
        for (input, strides) in self.strides() {
            let group = if self.is_grouped(input) { 4 } else { 1 };
            for (dim, &stride) in strides.iter().enumerate().filter(|(_, stride)| **stride > 1) {
                constants.push((STRIDES[input][dim], (stride / group) as f64));
            }
        }
        constants
    }

    /// What input `input` is bound as.
    pub(super) fn declaration(&self, binding: usize, input: usize) -> String {
        declaration(binding, "read", INPUTS[input], self.inputs[input].dtype, self.is_grouped(input))
    }

    /// `fn load0(e: u32) -> V`, which takes the index of an invocation's first element, in groups where there are four.
    pub(super) fn load(&self, text: &mut String, input: usize) {
        let (name, dtype) = (INPUTS[input], self.inputs[input].dtype);
        let index = self.index(text, input);
        if self.is_grouped(input) {
            let loaded = match dtype {
                DType::F32 => format!("{name}[{index}]"),
                dtype => format!("vec4f(unpack_{dtype}({name}[{index}].x), unpack_{dtype}({name}[{index}].y))"),
            };
            let _ = writeln!(text, "fn load{input}(e: u32) -> V {{\n    return {loaded};\n}}");
            return;
        }
        let element = match dtype {
            DType::F32 => format!("return {name}[{index}];"),
            dtype => format!(
                "let i = {index};\n    let v = unpack_{dtype}({name}[i / 2u]);\n    return select(v.x, v.y, (i & 1u) == 1u);"
            ),
        };
        let _ = writeln!(text, "fn element{input}(e: u32) -> f32 {{\n    {element}\n}}");
        let loaded = match self.lanes {
            // The second of an odd number of elements is not there; what is stored of it is padding.
            Lanes::Two => format!("V(element{input}(e), element{input}(min(e + 1u, N_ELEMENTS - 1u)))"),
            Lanes::One | Lanes::Four => format!("V(element{input}(e))"),
        };
        let _ = writeln!(text, "fn load{input}(e: u32) -> V {{\n    return {loaded};\n}}");
    }

    /// The index into an input for element `e` of the outputs, with the function that computes it.
    fn index(&self, text: &mut String, input: usize) -> String {
        let strides = match &self.layout.patterns[input] {
            Pattern::One => return "0u".to_owned(),
            Pattern::All => return "e".to_owned(),
            Pattern::Strided(strides) => strides,
        };
        let _ = writeln!(text, "fn index{input}(e: u32) -> u32 {{");
        let _ = writeln!(text, "    var rest = e;");
        let _ = writeln!(text, "    var index = 0u;");
        // Dimensions outside the outermost one that has a stride do not matter.
        let outermost = strides.iter().position(|stride| *stride != 0).unwrap_or(0);
        for dim in (outermost..strides.len()).rev() {
            let coordinate = if dim == 0 { "rest".to_owned() } else { format!("rest % {}", SIZES[dim]) };
            match strides[dim] {
                0 => {}
                1 => {
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
        format!("index{input}(e)")
    }
}

/// A binding, of single elements or groups of four; two elements of 16 bits share a word.
pub(super) fn declaration(binding: usize, access: &str, name: &str, dtype: DType, is_grouped: bool) -> String {
    let of = match (dtype.is_half(), is_grouped) {
        (false, false) => "f32",
        (false, true) => "vec4f",
        (true, false) => "u32",
        (true, true) => "vec2u",
    };
    format!("@group(0) @binding({binding}) var<storage, {access}> {name}: array<{of}>;\n")
}
