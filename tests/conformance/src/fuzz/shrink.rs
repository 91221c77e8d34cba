//! Finds a smaller program that still fails.

use super::program::{Arg, Input, Program};

/// The smallest program found for which `fails`, by removing steps, each replaced by one of its arguments or by a new input.
pub(crate) fn shrunk(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let mut smallest = program.clone();
    loop {
        let Some(smaller) = candidates(&smallest).find(|candidate| fails(candidate)) else { return smallest };
        smallest = smaller;
    }
}

/// Programs with fewer steps.
fn candidates(program: &Program) -> impl Iterator<Item = Program> + '_ {
    let n_steps = program.steps.len();
    let cut = (1..n_steps).map(|n| Program { steps: program.steps[..n].to_vec(), ..program.clone() });
    let shapes = program.shapes().unwrap_or_default();
    let by_argument = (0..n_steps)
        .flat_map(move |at| program.steps[at].args.iter().filter_map(move |&arg| without(program, at, arg)).collect::<Vec<_>>());
    let by_input = (0..n_steps).filter_map(move |at| {
        let shape = shapes.get(at)?.clone();
        let values = (0..shape.iter().product()).map(|i: usize| ((i * 29 + 7) % 31) as f32 / 8.0 - 1.9).collect();
        let mut program = program.clone();
        program.inputs.push(Input { shape, values, has_gradient: true });
        without(&program, at, Arg::Input(program.inputs.len() - 1))
    });
    cut.chain(by_argument)
        .chain(by_input)
        .map(|candidate| candidate.pruned())
        .filter(move |candidate| candidate.shapes().is_some() && !candidate.steps.is_empty() && candidate.steps.len() < n_steps)
}

/// The program in which another value takes the place of a step's result; `None` for the last step.
fn without(program: &Program, at: usize, value: Arg) -> Option<Program> {
    if at + 1 == program.steps.len() || matches!(value, Arg::Number(_)) {
        return None;
    }
    let mut program = program.clone();
    program.steps.iter_mut().flat_map(|step| &mut step.args).for_each(|arg| {
        if *arg == Arg::Step(at) {
            *arg = value;
        }
    });
    Some(program)
}
