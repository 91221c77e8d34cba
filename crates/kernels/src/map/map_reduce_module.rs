//! The WGSL of a [`MapReduce`], joined from parts: one module for the first pass, which evaluates the expression, and one for those over partial results.

use std::fmt::Write;

use super::layout::{Layout, Pattern};
use super::loads::{Loads, declaration};
use super::map::Map;
use super::map_reduce::{Fold, MapReduce};
use super::module::WORKGROUP;
use crate::core::stored_types::CONVERSIONS;
use crate::expr::Expr;
use crate::expr::wgsl::{self, Lanes};
use crate::{DType, Dispatch, Error, Module, Part, fold_workgroups};

/// The names of the constants that say where elements lie: sizes and strides of the dimensions that are kept, and of those that are reduced.
const KEPT: [[&str; 2]; Map::MAX_DIMS] = [
    ["KEPT0_SIZE", "KEPT0_STRIDE"],
    ["KEPT1_SIZE", "KEPT1_STRIDE"],
    ["KEPT2_SIZE", "KEPT2_STRIDE"],
    ["KEPT3_SIZE", "KEPT3_STRIDE"],
    ["KEPT4_SIZE", "KEPT4_STRIDE"],
    ["KEPT5_SIZE", "KEPT5_STRIDE"],
];
const REDUCED: [[&str; 2]; Map::MAX_DIMS] = [
    ["REDUCED0_SIZE", "REDUCED0_STRIDE"],
    ["REDUCED1_SIZE", "REDUCED1_STRIDE"],
    ["REDUCED2_SIZE", "REDUCED2_STRIDE"],
    ["REDUCED3_SIZE", "REDUCED3_STRIDE"],
    ["REDUCED4_SIZE", "REDUCED4_STRIDE"],
    ["REDUCED5_SIZE", "REDUCED5_STRIDE"],
];

/// A size and a stride for each of some dimensions, outermost first.
type Strides = Vec<[usize; 2]>;

pub(super) fn dispatches(reduction: &MapReduce, layout: &Layout) -> Result<Vec<Dispatch>, Error> {
    let passes = reduction.passes();
    let n_inputs = reduction.inputs.len();
    let y = n_inputs;
    let mut dispatches = Vec::with_capacity(passes.len());
    let mut n_before = reduction.n_reduced();
    for (pass, &n_parts) in passes.iter().enumerate() {
        let buffer = |pass: usize| y + 1 + pass % 2;
        let reads = if pass == 0 { (0..n_inputs).collect() } else { vec![buffer(pass - 1)] };
        let writes = vec![if n_parts == 1 { y } else { buffer(pass) }];
        let module = PassModule { reduction, layout, is_first: pass == 0, is_last: n_parts == 1, n_before, n_parts };
        dispatches.push(Dispatch {
            label: if pass == 0 { "kernels.map_reduce" } else { "kernels.map_reduce_partials" },
            wgsl: module.module(),
            entry: "main",
            constants: module.constants(),
            params: vec![],
            reads,
            writes,
            workgroups: fold_workgroups("map_reduce", (reduction.n_kept() * n_parts).div_ceil(WORKGROUP))?,
        });
        n_before = n_parts;
    }
    Ok(dispatches)
}

/// Of the part with the main function.
const HEAD: &str = "// y = op of expr(x0[i], x1[i], ...): a chain of elements an invocation, then chains of chains in further passes.\n// Twin: map/map_reduce_cpu.rs. Bound by bytes.\n";

struct PassModule<'a> {
    reduction: &'a MapReduce,
    layout: &'a Layout,
    is_first: bool,
    is_last: bool,
    /// Elements that each element of the result is still of, and those that it is of after this pass.
    n_before: usize,
    n_parts: usize,
}

impl PassModule<'_> {
    fn loads(&self) -> Loads<'_> {
        Loads { inputs: &self.reduction.inputs, layout: self.layout, lanes: Lanes::One, in_place: None }
    }

    /// Whether neighbouring elements are of neighbouring elements of the result, so that neighbouring invocations had better be, too.
    fn is_inner_kept(&self) -> bool {
        match self.layout.patterns.last() {
            Some(Pattern::Strided { strides, .. }) => strides.last() != Some(&0),
            Some(Pattern::All) => true,
            _ => false,
        }
    }

    /// The dimensions that are kept, and those that are reduced.
    fn strides(&self) -> [Strides; 2] {
        let n_dims = self.layout.sizes.len();
        let is_kept = |dim: usize| match self.layout.patterns.last() {
            Some(Pattern::Strided { strides, .. }) => strides[dim] != 0,
            Some(Pattern::All) => true,
            _ => false,
        };
        let stride = |dim: usize| self.layout.sizes[dim + 1..].iter().product();
        [true, false].map(|kept| {
            (0..n_dims).filter(|&dim| is_kept(dim) == kept).map(|dim| [self.layout.sizes[dim], stride(dim)]).collect()
        })
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = vec![
            ("N_KEPT", self.reduction.n_kept() as f64),
            ("N_BEFORE", self.n_before as f64),
            ("N_PARTS", self.n_parts as f64),
        ];
        if self.is_first {
            let [kept, reduced] = self.strides();
            for (names, strides) in [(&KEPT, kept), (&REDUCED, reduced)] {
                for (i, (names, values)) in names.iter().zip(&strides).enumerate() {
                    // The outermost is what is left of the index.
                    constants.extend((i > 0).then_some((names[0], values[0] as f64)));
                    constants.extend((values[1] != 1).then_some((names[1], values[1] as f64)));
                }
            }
            constants.extend(self.loads().constants());
        }
        constants
    }

    fn module(&self) -> Module {
        let (expr, fold, result) = self.reduction.parts();
        let element = if self.is_first { expr } else { Expr::input(0) };
        let n_inputs = if self.is_first { self.reduction.inputs.len() } else { 1 };
        let result = if self.is_last { result } else { Expr::input(0) };
        // Named for the parts that it brings along: `maximum` or `minimum`, and `from_bits`.
        let [a, b] = [Expr::input(0), Expr::input(1)];
        let (combined, identity) = match fold {
            Fold::Sum => (a + b, 0.0),
            Fold::Max => (a.max(b), f32::NEG_INFINITY),
            Fold::Min => (a.min(b), f32::INFINITY),
        };
        let identity = Expr::constant(identity);
        let is_packed = self.is_first && self.reduction.inputs.iter().any(|input| input.dtype.is_half());
        let mut arguments = String::new();
        self.declarations(&mut arguments);
        self.load(&mut arguments);
        let mut main = String::from(HEAD);
        self.main(&mut main, n_inputs);
        Module::new([Lanes::One.part()])
            .with_all(wgsl::functions(&[element.clone(), result.clone(), combined.clone(), identity.clone()]))
            .with_all(is_packed.then_some(CONVERSIONS))
            .with(Part { name: "arguments".into(), text: arguments.into() })
            .with(wgsl::function("element", &element, n_inputs))
            .with(wgsl::function("combined", &combined, 2))
            .with(wgsl::function("identity", &identity, 0))
            .with(wgsl::function("result", &result, 1))
            .with(Part { name: "main".into(), text: main.into() })
    }

    fn declarations(&self, text: &mut String) {
        let _ = writeln!(text, "const WG: u32 = {WORKGROUP}u;");
        for (name, _) in self.constants() {
            let _ = writeln!(text, "override {name}: u32;");
        }
        let n_reads = if self.is_first {
            for input in 0..self.reduction.inputs.len() {
                text.push_str(&self.loads().declaration(input, input));
            }
            self.reduction.inputs.len()
        } else {
            text.push_str(&declaration(0, "read", "before", DType::F32, false));
            1
        };
        text.push_str(&declaration(n_reads, "read_write", "y", DType::F32, false));
    }

    fn load(&self, text: &mut String) {
        if !self.is_first {
            text.push_str("fn load0(e: u32) -> V {\n    return before[e];\n}\n");
            let [kept, reduced] = if self.is_inner_kept() { ["o", "r * N_KEPT"] } else { ["o * N_BEFORE", "r"] };
            let _ = writeln!(text, "fn kept_offset(o: u32) -> u32 {{\n    return {kept};\n}}");
            let _ = writeln!(text, "fn reduced_offset(r: u32) -> u32 {{\n    return {reduced};\n}}");
            return;
        }
        for input in 0..self.reduction.inputs.len() {
            self.loads().load(text, input);
        }
        let [kept, reduced] = self.strides();
        offset(text, "kept_offset", "o", &kept, &KEPT);
        offset(text, "reduced_offset", "r", &reduced, &REDUCED);
    }

    fn main(&self, text: &mut String, n_inputs: usize) {
        let [o, part] = if self.is_inner_kept() { ["i % N_KEPT", "i / N_KEPT"] } else { ["i / N_PARTS", "i % N_PARTS"] };
        let loads: Vec<String> = (0..n_inputs).map(|input| format!("load{input}(e)")).collect();
        let _ = write!(
            text,
            "@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {{
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= N_KEPT * N_PARTS {{
        return;
    }}
    let start = kept_offset({o});
    var total = identity();
    for (var r = {part}; r < N_BEFORE; r += N_PARTS) {{
        let e = start + reduced_offset(r);
        total = combined(total, element({}));
    }}
    y[i] = result(total);
}}
",
            loads.join(", ")
        );
    }
}

/// The function that finds index `index` among dimensions of these sizes and strides.
fn offset(text: &mut String, name: &str, index: &str, strides: &Strides, constants: &[[&str; 2]; Map::MAX_DIMS]) {
    let _ = writeln!(text, "fn {name}({index}: u32) -> u32 {{\n    var rest = {index};\n    var offset = 0u;");
    for (i, [_, stride]) in strides.iter().enumerate().rev() {
        let [size_name, stride_name] = constants[i];
        let coordinate = if i == 0 { "rest".to_owned() } else { format!("(rest % {size_name})") };
        let _ = match stride {
            1 => writeln!(text, "    offset += {coordinate};"),
            _ => writeln!(text, "    offset += {coordinate} * {stride_name};"),
        };
        if i > 0 {
            let _ = writeln!(text, "    rest /= {size_name};");
        }
    }
    let _ = writeln!(text, "    return offset;\n}}");
}
