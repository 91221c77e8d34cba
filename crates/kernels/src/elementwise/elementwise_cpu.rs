use std::ops::Range;

use rayon::prelude::*;

use super::activation_cpu;
use super::add_cpu;
use super::multiply_cpu;
use crate::ElementwiseStep;
use crate::core::half::{Element, Floats, narrow};
use crate::core::vectorised::vectorised;

/// Elements that a chain is done to at a time: they stay in the first cache, and a copy of them on the stack.
const BLOCK_LEN: usize = 2048;
/// Elements below which a loop is not worth handing to other threads.
const SERIAL_LEN: usize = 16 * 1024;

/// Each step is the twin of the kernel that does it alone, so that a chain has its bits.
pub(crate) fn run(steps: &[ElementwiseStep], x: &[f32], operands: &[&[f32]], y: &mut [f32]) {
    each_block(y, |at, y| {
        y.copy_from_slice(&x[at.clone()]);
        run_steps(steps, operands, at, y);
    });
}

/// The same from what is in `y` already.
pub(crate) fn run_in_place(steps: &[ElementwiseStep], operands: &[&[f32]], y: &mut [f32]) {
    each_block(y, |at, y| run_steps(steps, operands, at, y));
}

/// The same over arguments stored in 16 bits, `x` the first of `reads`: widened and rounded a block at a time.
pub(crate) fn run_stored<Y: Element>(steps: &[ElementwiseStep], reads: &[Floats<'_>], y: &mut [Y]) {
    each_block(y, |at, y| {
        let (mut v, mut buffer) = ([0.0; BLOCK_LEN], [0.0; BLOCK_LEN]);
        let (v, buffer) = (&mut v[..y.len()], &mut buffer[..y.len()]);
        let mut operands = reads.iter();
        if let Some(x) = operands.next() {
            v.copy_from_slice(x.get(at.clone(), buffer));
        }
        for &step in steps {
            match operands.as_slice().first().filter(|_| step.takes_operand()) {
                Some(operand) => {
                    run_step(step, operand.get(at.clone(), buffer), v);
                    operands.next();
                }
                None => run_step(step, &[], v),
            }
        }
        vectorised(
            #[inline(always)]
            || narrow(v, y),
        );
    });
}

/// Calls `f(where, block of y)` for blocks that cover `y`.
fn each_block<Y: Send>(y: &mut [Y], f: impl Fn(Range<usize>, &mut [Y]) + Sync) {
    let run = |(i, y): (usize, &mut [Y])| f(i * BLOCK_LEN..i * BLOCK_LEN + y.len(), y);
    if y.len() <= SERIAL_LEN {
        y.chunks_mut(BLOCK_LEN).enumerate().for_each(run);
    } else {
        y.par_chunks_mut(BLOCK_LEN).enumerate().for_each(run);
    }
}

/// The steps over a block, which lies at `at`.
fn run_steps(steps: &[ElementwiseStep], operands: &[&[f32]], at: Range<usize>, y: &mut [f32]) {
    let mut operands = operands.iter().map(|operand| &operand[at.clone()]);
    for &step in steps {
        let operand = if step.takes_operand() { operands.next().unwrap_or(&[]) } else { &[] };
        run_step(step, operand, y);
    }
}

fn run_step(step: ElementwiseStep, operand: &[f32], y: &mut [f32]) {
    let mut before = [0.0; BLOCK_LEN];
    let v = &mut before[..y.len()];
    v.copy_from_slice(y);
    match step {
        ElementwiseStep::Activate(act) => activation_cpu::activate(act, v, y),
        ElementwiseStep::Add => add_cpu::run(v, operand, y),
        ElementwiseStep::Multiply => multiply_cpu::run(v, operand, y),
        ElementwiseStep::ActivationGrad(act) => activation_cpu::activation_grad(act, v, operand, y),
        ElementwiseStep::OutputGrad(act) => activation_cpu::output_grad(act, v, operand, y),
    }
}
