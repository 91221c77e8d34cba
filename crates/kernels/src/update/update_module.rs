//! The WGSL of an [`Update`], from the expressions of its rule.

use std::fmt::Write;

use super::rule::Rule;
use super::step_value::StepValue;
use super::update::{GROUP_LEN, Groups, Update};
use crate::error::Error;
use crate::expr::wgsl::{self, VectorWidth};
use crate::kernel::kernel::Kernel;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{Module, Part, part};

const HEAD: &str = "// y = rule(step, x, y), a few elements per invocation. Does nothing if the update does not take place. Twin: update/update_cpu.rs. Bound by bytes.\n";

pub(super) fn dispatch<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize>(
    kernel: &Update<R, V, I, O>,
) -> Result<Dispatch, Error> {
    let width = if kernel.n.is_multiple_of(4) { VectorWidth::Four } else { VectorWidth::One };
    let values = kernel.rule.values();
    let (exprs, condition) = (kernel.exprs(), kernel.condition());
    let all: Vec<_> = exprs.iter().chain([&condition]).cloned().collect();
    let functions = exprs.iter().enumerate().map(|(i, expr)| wgsl::function(&format!("expr{i}"), expr, V + I + O));
    let has_correction =
        values.iter().any(|value| matches!(value, StepValue::BiasCorrection(_) | StepValue::RootBiasCorrection(_)));
    let module = Module::new([width.part()])
        .with_all(wgsl::functions(&all))
        .with_all(has_correction.then_some(part!("update_exp_neg.wgsl")))
        .with_all(functions)
        .with(wgsl::function("takes_place", &condition, 1 + V))
        .with(Part::own("main", main(kernel, width)));
    let (inputs, replaced) = Update::<R, V, I, O>::names();
    let bound = |name: &'static str| match name {
        "groups" => Binding::of(name).elements("vec2f"),
        name if width == VectorWidth::Four && (inputs.contains(&name) || replaced.contains(&name)) => {
            Binding::of(name).elements("vec4f")
        }
        name => Binding::of(name),
    };
    let args = kernel.args();
    let (reads, writes) = args.split_at(args.len() - O);
    let [reads, writes] = [reads, writes].map(|args| args.iter().map(|arg| bound(arg.name)).collect::<Vec<_>>());
    let n_invocations = kernel.n.div_ceil(width.count());
    Dispatch::elementwise(kernel.name(), kernel.name(), module, n_invocations)?.bind(&args, reads, writes)
}

fn main<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize>(
    kernel: &Update<R, V, I, O>,
    width: VectorWidth,
) -> String {
    let mut text = format!("{HEAD}fn element(i: u32) {{\n    if i >= arrayLength(&y0) {{\n        return;\n    }}\n");
    let values = kernel.rule.values();
    let mut numbers = kernel.numbers();
    for (k, value) in values.iter().enumerate() {
        let value = match value {
            StepValue::Number => format!("{}[0]", numbers.next().expect("an argument for each")),
            value => value.wgsl(),
        };
        let _ = writeln!(text, "    var s{k} = V({value});");
    }
    let step: Vec<String> = (0..V).map(|k| format!("s{k}")).collect();
    let first = if width == VectorWidth::One { "" } else { ".x" };
    let given = std::iter::once(format!("V({})", StepValue::Skipped.wgsl())).chain(step.clone()).collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "    if takes_place({given}){first} == 0.0 {{\n        return;\n    }}");
    if kernel.groups == Groups::Table {
        let len = GROUP_LEN / width.count();
        let _ = writeln!(text, "    let own = groups[i / {len}u];\n    if own.x < 0.0 {{\n        return;\n    }}");
        for (k, value) in values.iter().enumerate() {
            let _ = match value {
                StepValue::Rate => writeln!(text, "    s{k} *= own.x;"),
                StepValue::Decay(_) => writeln!(text, "    s{k} = V(own.y);"),
                _ => Ok(()),
            };
        }
    }
    let (inputs, replaced) = Update::<R, V, I, O>::names();
    let mut arguments = step;
    arguments.extend(inputs.iter().map(|name| format!("{name}[i]")));
    for name in replaced {
        let _ = writeln!(text, "    let old_{name} = {name}[i];");
        arguments.push(format!("old_{name}"));
    }
    let arguments = arguments.join(", ");
    for (k, name) in replaced.iter().enumerate() {
        let _ = writeln!(text, "    {name}[i] = expr{k}({arguments});");
    }
    text.push_str("}\n");
    text
}
