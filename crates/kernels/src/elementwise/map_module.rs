//! The WGSL of a [`Map`], composed of parts: types, functions, conversions, loads, the expressions, and one main function.

use std::fmt::Write;

use crate::arg::Arg;
use crate::dtype::DType;
use crate::elementwise::loads::{Loads, binding};
use crate::error::Error;
use crate::expr::wgsl::{self, VectorWidth};
use crate::map::layout::Layout;
use crate::map::map::{Map, OUTPUTS};
use crate::random::draws::DRAWS;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{Module, Part};
use crate::storage::stored_types::CONVERSIONS;

/// The dispatch of a map with these arguments; with `in_place`, the dispatch of one whose output replaces that input.
pub(crate) fn dispatch(map: &Map, args: &[Arg], layout: &Layout, in_place: Option<usize>) -> Result<Dispatch, Error> {
    let module = MapModule { map, loads: Loads { inputs: &map.inputs, layout, width: width(map, layout), in_place } };
    let n_invocations = map.len().div_ceil(module.loads.width.count());
    let outputs = OUTPUTS.iter().zip(&map.outputs).map(|(name, output)| binding(name, output.dtype, module.loads.in_fours()));
    let dispatch = Dispatch::elementwise("map", "kernels.map", module.module(), n_invocations)?;
    dispatch.constants(module.constants()).bind(args, module.loads.bindings(), outputs)
}

/// Four elements per invocation if that leaves no remainder in any argument; else two if outputs are stored in 16 bits, since two
/// share a word and no two invocations may write the same word; else one.
fn width(map: &Map, layout: &Layout) -> VectorWidth {
    let is_strided = layout.patterns.iter().any(|pattern| pattern.strides().is_some());
    let innermost = if is_strided { layout.sizes.last().copied().unwrap_or(1) } else { map.len() };
    if innermost.is_multiple_of(4) {
        VectorWidth::Four
    } else if map.outputs.iter().any(|output| output.dtype.is_half()) {
        VectorWidth::Two
    } else {
        VectorWidth::One
    }
}

/// The head comment of the part with the main function.
const HEAD: &str = "// y[i] = expr(x0[i], x1[i], ...), a few elements per invocation; inputs are broadcast. Twin: elementwise/map_cpu.rs. Bound by bytes.\n";

/// The part that declares constants whose values a dispatch has.
pub(crate) fn constants_part(constants: &[(&'static str, f64)]) -> Part {
    Part::own("constants", constants.iter().map(|(name, _)| format!("override {name}: u32;\n")).collect::<String>())
}

struct MapModule<'a> {
    map: &'a Map,
    loads: Loads<'a>,
}

impl MapModule<'_> {
    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.loads.constants();
        if self.loads.width == VectorWidth::Two {
            constants.push(("N_ELEMENTS", self.map.len() as f64));
        }
        constants
    }

    fn module(&self) -> Module {
        let exprs: Vec<_> = self.map.outputs.iter().map(|output| output.expr.clone()).collect();
        let n_inputs = self.map.inputs.len();
        let dtypes = self.map.inputs.iter().map(|input| input.dtype).chain(self.map.outputs.iter().map(|output| output.dtype));
        let is_packed = dtypes.into_iter().any(DType::is_half);
        let mut loads = String::new();
        for input in 0..n_inputs {
            self.loads.load(&mut loads, input);
        }
        let mut main = String::from(HEAD);
        self.main(&mut main);
        let functions = exprs.iter().enumerate().map(|(i, expr)| wgsl::function(&format!("expr{i}"), expr, n_inputs));
        Module::new([self.loads.width.part()])
            .with_all(wgsl::functions(&exprs))
            .with_all(is_packed.then_some(CONVERSIONS))
            .with_all(self.map.inputs.iter().any(|input| input.draws.is_some()).then_some(DRAWS))
            .with(constants_part(&self.constants()))
            .with(Part::own("loads", loads))
            .with_all(functions)
            .with(Part::own("main", main))
    }

    fn main(&self, text: &mut String) {
        // Without a constant if none is needed: maps of any length then share a pipeline.
        let n = if self.loads.width == VectorWidth::Two { "(N_ELEMENTS + 1u) / 2u" } else { "arrayLength(&y0)" };
        let _ = writeln!(text, "fn element(i: u32) {{\n    if i >= {n} {{\n        return;\n    }}");
        let e = if self.loads.width == VectorWidth::Two { "2u * i" } else { "i" };
        let _ = writeln!(text, "    let e = {e};");
        for input in 0..self.map.inputs.len() {
            let _ = writeln!(text, "    let v{input} = load{input}(e);");
        }
        let arguments: Vec<String> = (0..self.map.inputs.len()).map(|input| format!("v{input}")).collect();
        for (i, output) in self.map.outputs.iter().enumerate() {
            let _ = writeln!(text, "    let result{i} = expr{i}({});", arguments.join(", "));
            self.store(text, OUTPUTS[i], &format!("result{i}"), output.dtype);
        }
        text.push_str("}\n");
    }

    fn store(&self, text: &mut String, name: &str, result: &str, dtype: DType) {
        let _ = match (dtype.is_half(), self.loads.width) {
            (false, VectorWidth::One | VectorWidth::Four) => writeln!(text, "    {name}[i] = {result};"),
            (false, VectorWidth::Two) => {
                writeln!(
                    text,
                    "    {name}[e] = {result}.x;\n    if e + 1u < N_ELEMENTS {{\n        {name}[e + 1u] = {result}.y;\n    }}"
                )
            }
            (true, VectorWidth::Four) => {
                writeln!(text, "    {name}[i] = vec2u(pack_{dtype}({result}.xy), pack_{dtype}({result}.zw));")
            }
            (true, _) => writeln!(text, "    {name}[i] = pack_{dtype}({result});"),
        };
    }
}
