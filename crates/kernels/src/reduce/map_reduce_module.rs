//! The WGSL of a [`MapReduce`], composed of parts: one module for the first pass, which evaluates the expression, and one for
//! passes over partial results.

use std::fmt::Write;

use crate::arg::Arg;
use crate::elementwise::loads::Loads;
use crate::elementwise::map_module::constants_part;
use crate::error::Error;
use crate::expr::Expr;
use crate::expr::wgsl::{self, VectorWidth};
use crate::kernel::kernel::Kernel;
use crate::map::layout::{Layout, Pattern};
use crate::map::map::Map;
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::reduce_op::{Fold, Reducer};
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{Module, Part};
use crate::shader::names::names;
use crate::storage::stored_types::CONVERSIONS;

/// The names of the constants for the positions of elements: sizes and strides of kept and of reduced dimensions.
const KEPT: [[&str; 2]; Map::MAX_DIMS] = names!("KEPT0" "KEPT1" "KEPT2" "KEPT3" "KEPT4" "KEPT5", "_SIZE" "_STRIDE");
const REDUCED: [[&str; 2]; Map::MAX_DIMS] =
    names!("REDUCED0" "REDUCED1" "REDUCED2" "REDUCED3" "REDUCED4" "REDUCED5", "_SIZE" "_STRIDE");

/// A size and a stride for each of some dimensions, outermost first.
type Strides = Vec<[usize; 2]>;

pub(super) fn dispatches(reduction: &MapReduce, layout: &Layout) -> Result<Vec<Dispatch>, Error> {
    let passes = reduction.passes();
    let args = reduction.args();
    let y = reduction.inputs.len();
    let mut dispatches = Vec::with_capacity(passes.len());
    let mut n_before = reduction.n_reduced();
    for (pass, &n_parts) in passes.iter().enumerate() {
        let partials = |pass: usize| Binding::at(y + 1 + pass % 2);
        let write = if n_parts == 1 { Binding::at(y) } else { partials(pass) }.named("y");
        let label = if pass == 0 { "kernels.map_reduce" } else { "kernels.map_reduce_partials" };
        let module = PassModule { reduction, layout, is_first: pass == 0, is_last: n_parts == 1, n_before, n_parts };
        let reads = if pass == 0 { module.loads().bindings().collect() } else { vec![partials(pass - 1).named("before")] };
        dispatches.push(module.dispatch(label)?.bind(&args, reads, [write])?);
        n_before = n_parts;
    }
    Ok(dispatches)
}

/// The sum of `n_parts` arrays of `n` elements that are contiguous in the argument `parts`, into the argument `y`, in one
/// dispatch: the last step of kernels that leave a few partial sums.
pub(crate) fn sum_of_parts(
    label: &'static str,
    [n_parts, n]: [usize; 2],
    args: &[Arg],
    y: &'static str,
) -> Result<Dispatch, Error> {
    let reduction = MapReduce::of(Reducer::Sum, &[n_parts, n], &[0]);
    let layout = reduction.layout()?;
    let module =
        PassModule { reduction: &reduction, layout: &layout, is_first: true, is_last: true, n_before: n_parts, n_parts: 1 };
    module.dispatch(label)?.bind(args, [Binding::of("parts").named("x0")], [Binding::of(y).named("y")])
}

/// The head comment of the part with the main function.
const HEAD: &str = "// y = results of the folds of expressions of x0[i], x1[i], ...: one chain of elements per invocation, then chains of chains in further passes.\n// Twin: reduce/map_reduce_cpu.rs. Bound by bytes.\n";

struct PassModule<'a> {
    reduction: &'a MapReduce,
    layout: &'a Layout,
    is_first: bool,
    is_last: bool,
    /// The number of elements, or partial results, per element of a result before this pass and after it.
    n_before: usize,
    n_parts: usize,
}

impl PassModule<'_> {
    /// The dispatch, without its arguments.
    fn dispatch(&self, label: &'static str) -> Result<Dispatch, Error> {
        let n = self.reduction.n_kept() * self.n_parts;
        Ok(Dispatch::elementwise("map_reduce", label, self.module(), n)?.constants(self.constants()))
    }

    fn loads(&self) -> Loads<'_> {
        Loads { inputs: &self.reduction.inputs, layout: self.layout, width: VectorWidth::One, in_place: None }
    }

    /// Whether neighbouring elements belong to neighbouring elements of a result, so neighbouring invocations should read them.
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
                    // The outermost index is the remainder.
                    constants.extend((i > 0).then_some((names[0], values[0] as f64)));
                    constants.extend((values[1] != 1).then_some((names[1], values[1] as f64)));
                }
            }
            constants.extend(self.loads().constants());
        }
        constants
    }

    /// The values to fold, as expressions of the inputs of this pass.
    fn elements(&self) -> Vec<Expr> {
        if self.is_first { self.reduction.elements() } else { (0..self.reduction.exprs.len()).map(Expr::input).collect() }
    }

    /// The values to write, as expressions of the folds.
    fn results(&self) -> Vec<Expr> {
        if self.is_last { self.reduction.results_of_folds() } else { (0..self.reduction.exprs.len()).map(Expr::input).collect() }
    }

    /// The values that an invocation loads for an element.
    fn n_loads(&self) -> usize {
        if self.is_first { self.reduction.inputs.len() } else { self.reduction.exprs.len() }
    }

    fn module(&self) -> Module {
        let (elements, results) = (self.elements(), self.results());
        // Operations named after the parts that they add: `maximum` or `minimum`, and `from_bits`.
        let [a, b] = [Expr::input(0), Expr::input(1)];
        let fold = self.reduction.op.fold();
        let combined = match fold {
            Fold::Sum => a + b,
            Fold::Max => a.max(b),
            Fold::Min => a.min(b),
        };
        let identity = Expr::constant(fold.identity());
        let called: Vec<Expr> = elements.iter().chain(&results).chain([&combined, &identity]).cloned().collect();
        let is_packed = self.is_first && self.reduction.inputs.iter().any(|input| input.dtype.is_half());
        let mut loads = String::new();
        self.load(&mut loads);
        let functions = |name: &'static str, exprs: Vec<Expr>, n_inputs: usize| {
            exprs.into_iter().enumerate().map(move |(i, expr)| wgsl::function(&format!("{name}{i}"), &expr, n_inputs))
        };
        let mut main = String::from(HEAD);
        self.main(&mut main);
        Module::new([VectorWidth::One.part()])
            .with_all(wgsl::functions(&called))
            .with_all(is_packed.then_some(CONVERSIONS))
            .with(constants_part(&self.constants()))
            .with(Part::own("loads", loads))
            .with_all(functions("expr", elements, self.n_loads()))
            .with(wgsl::function("combined", &combined, 2))
            .with(wgsl::function("identity", &identity, 0))
            .with_all(functions("result", results, self.reduction.exprs.len()))
            .with(Part::own("main", main))
    }

    fn load(&self, text: &mut String) {
        if !self.is_first {
            for i in 0..self.n_loads() {
                let _ = writeln!(text, "fn load{i}(e: u32) -> V {{\n    return before[{i}u * N_KEPT * N_BEFORE + e];\n}}");
            }
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

    fn main(&self, text: &mut String) {
        let [o, part] = if self.is_inner_kept() { ["i % N_KEPT", "i / N_KEPT"] } else { ["i / N_PARTS", "i % N_PARTS"] };
        let join =
            |n: usize, item: &dyn Fn(usize) -> String, separator: &str| (0..n).map(item).collect::<Vec<_>>().join(separator);
        let (n_loads, n_folds) = (self.n_loads(), self.reduction.exprs.len());
        let totals = join(n_folds, &|i| format!("    var total{i} = identity();\n"), "");
        let loads = join(n_loads, &|i| format!("        let v{i} = load{i}(e);\n"), "");
        let values = join(n_loads, &|i| format!("v{i}"), ", ");
        let folds = join(n_folds, &|i| format!("        total{i} = combined(total{i}, expr{i}({values}));\n"), "");
        let folded = join(n_folds, &|i| format!("total{i}"), ", ");
        let n_results = self.results().len();
        let stores = join(n_results, &|i| format!("    y[{i}u * N_KEPT * N_PARTS + i] = result{i}({folded});\n"), "");
        let _ = write!(
            text,
            "fn element(i: u32) {{
    if i >= N_KEPT * N_PARTS {{
        return;
    }}
    let start = kept_offset({o});
{totals}    for (var r = {part}; r < N_BEFORE; r += N_PARTS) {{
        let e = start + reduced_offset(r);
{loads}{folds}    }}
{stores}}}
"
        );
    }
}

/// The function that maps index `index` to an offset, given these sizes and strides of dimensions.
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
