//! The twin of [`Map`]: blocks of elements in the L1 cache, tasks of many blocks on the threads of the team.

use std::ops::Range;

use half::{bf16, f16};
use rayon::prelude::*;

use crate::aligned::AlignedFloats;
use crate::cpu::team::OnTeam;
use crate::dtype::DType;
use crate::elementwise::inputs_cpu::{Input, precomputed};
use crate::expr::{BLOCK_LEN, Evaluator, Operand, Scratch};
use crate::kernel::floats::{Floats, of_any_type};
use crate::kernel::twin::TwinArgs;
use crate::map::form::{Form, Further};
use crate::map::layout::Layout;
use crate::map::map::{INPUTS, Map, OUTPUTS};
use crate::random::draws_cpu::Drawn;
use crate::storage::element::{narrow, widen};
use crate::vectorised::{inlined, vectorised};

/// Elements per task.
const TASK_LEN: usize = 64 * 1024;
/// Elements up to which using other threads does not pay.
const SERIAL_LEN: usize = 16 * 1024;

/// With `in_place`, the output replaces that input.
pub(crate) fn run(map: &Map, layout: &Layout, in_place: Option<usize>, args: &mut TwinArgs<'_>) {
    let inputs = INPUTS.iter().copied().zip(&map.inputs).zip(&layout.patterns).enumerate();
    let inputs = inputs.map(|(i, ((name, input), pattern))| match in_place {
        Some(replaced) if replaced == i => Input::Output,
        _ => Input::new(args, name, input, pattern, &layout.sizes),
    });
    let mut inputs: Vec<Input<'_>> = inputs.collect();
    let outputs: Vec<Output<'_>> = OUTPUTS.iter().zip(&map.outputs).map(|(name, _)| Output::of(args, name)).collect();
    let mut exprs: Vec<_> = map.outputs.iter().map(|output| output.expr.clone()).collect();
    // Not for a few elements, for which preparing would take longer than it saves.
    let are_many = map.len() > TASK_LEN;
    if are_many {
        (exprs, inputs) = precomputed(exprs, inputs);
    }
    let mut job = Job { evaluator: Evaluator::new(&exprs), form: None, inputs, sizes: &layout.sizes };
    // Nor a form where the evaluator is one loop as well.
    if are_many && !(are_in_place(&outputs) && job.is_stream()) {
        job.form = form_of(map, &job.inputs).filter(|(form, _)| form.is_faster_than_evaluator());
    }
    if map.len() <= SERIAL_LEN { job.run(0, outputs) } else { job.split(outputs) }
}

/// Whether results are computed in the outputs themselves.
fn are_in_place(outputs: &[Output<'_>]) -> bool {
    outputs.iter().all(|output| matches!(output, Output::F32(_)))
}

/// The form of the expression, and the random numbers that it reads, if all other inputs are whole.
fn form_of(map: &Map, inputs: &[Input<'_>]) -> Option<(Form, Option<Drawn>)> {
    let [output] = &map.outputs[..] else { return None };
    let is_whole = |input: &Input<'_>| matches!(input, Input::All(_) | Input::Output);
    let (further, drawn) = match inputs {
        [value] if is_whole(value) => (Further::None, None),
        [value, Input::Drawn(drawn)] if is_whole(value) => (Further::None, Some(*drawn)),
        [value, other] if is_whole(value) && is_whole(other) => (Further::Matrix, None),
        _ => return None,
    };
    Some((Form::of(&output.expr, further, drawn.is_some())?, drawn))
}

/// An output, or part of it.
enum Output<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [f16]),
    Bf16(&'a mut [bf16]),
}

impl<'a> Output<'a> {
    fn of(args: &mut TwinArgs<'a>, arg: &'static str) -> Self {
        let index = args.find(arg);
        match args.dtype(index) {
            DType::F16 => Self::F16(args.write(index)),
            DType::Bf16 => Self::Bf16(args.write(index)),
            _ => Self::F32(args.write(index)),
        }
    }

    fn len(&self) -> usize {
        of_any_type!(self, y => y.len())
    }

    fn split_at(self, mid: usize) -> (Self, Self) {
        fn both<'a, T, Y>(y: &'a mut [T], mid: usize, of: impl Fn(&'a mut [T]) -> Y) -> (Y, Y) {
            let (a, b) = y.split_at_mut(mid);
            (of(a), of(b))
        }
        match self {
            Self::F32(y) => both(y, mid, Self::F32),
            Self::F16(y) => both(y, mid, Self::F16),
            Self::Bf16(y) => both(y, mid, Self::Bf16),
        }
    }

    /// The memory into which the values of `range` are written in f32: in place, or `buffer`, which [`keep`](Self::keep) rounds.
    fn in_f32<'b>(&'b mut self, range: Range<usize>, buffer: &'b mut [f32]) -> &'b mut [f32] {
        match self {
            Self::F32(y) => &mut y[range],
            Self::F16(_) | Self::Bf16(_) => &mut buffer[..range.len()],
        }
    }

    /// `x` = the elements of `range`, in f32.
    fn widen_into(&self, range: Range<usize>, x: &mut [f32]) {
        vectorised(inlined!(|| of_any_type!(self, y => widen(&y[range.clone()], x))));
    }

    fn keep(&mut self, range: Range<usize>, buffer: &[f32]) {
        vectorised(inlined!(|| match self {
            Self::F32(_) => {}
            Self::F16(y) => narrow(&buffer[..range.len()], &mut y[range.clone()]),
            Self::Bf16(y) => narrow(&buffer[..range.len()], &mut y[range.clone()]),
        }));
    }
}

struct Job<'a> {
    evaluator: Evaluator,
    /// The loop instead of the evaluator, if there is one.
    form: Option<(Form, Option<Drawn>)>,
    inputs: Vec<Input<'a>>,
    sizes: &'a [usize],
}

/// The working memory of a task.
struct Memory {
    scratch: Scratch,
    /// For inputs and outputs that are not in f32 and in order.
    inputs: Vec<AlignedFloats>,
    outputs: Vec<AlignedFloats>,
}

impl Job<'_> {
    /// Divides the outputs into tasks.
    fn split(&self, outputs: Vec<Output<'_>>) {
        let n_tasks = outputs.first().map_or(0, Output::len).div_ceil(TASK_LEN);
        let mut tasks: Vec<Vec<Output<'_>>> = (0..n_tasks).map(|_| Vec::with_capacity(outputs.len())).collect();
        for output in outputs {
            let mut rest = output;
            for task in &mut tasks {
                let len = rest.len().min(TASK_LEN);
                let (own, after) = rest.split_at(len);
                task.push(own);
                rest = after;
            }
        }
        tasks.into_par_iter().enumerate().for_each_on_team(|(i, outputs)| self.run(i * TASK_LEN, outputs));
    }

    /// Whether nothing is kept between operations, and inputs are read in place: then a task is one loop.
    fn is_stream(&self) -> bool {
        self.evaluator.keeps_nothing()
            && self.inputs.iter().all(|input| matches!(input, Input::One(_) | Input::All(Floats::F32(_))))
    }

    fn run(&self, start: usize, mut outputs: Vec<Output<'_>>) {
        let n = outputs.first().map_or(0, Output::len);
        let buffer = |is_needed: bool| AlignedFloats::new(if is_needed { BLOCK_LEN } else { 0 });
        let mut memory = Memory {
            scratch: self.evaluator.scratch(),
            inputs: self.inputs.iter().map(Input::buffer).collect(),
            outputs: outputs.iter().map(|output| buffer(!matches!(output, Output::F32(_)))).collect(),
        };
        let block_len = if are_in_place(&outputs) && self.is_stream() { n } else { BLOCK_LEN };
        for block in (0..n).step_by(block_len.max(1)) {
            self.run_block(start, block..(block + block_len).min(n), &mut outputs, &mut memory);
        }
    }

    /// The elements of `range`, counted from `start`.
    fn run_block(&self, start: usize, range: Range<usize>, outputs: &mut [Output<'_>], memory: &mut Memory) {
        let Memory { scratch, inputs: input_buffers, outputs: output_buffers } = memory;
        let mut operands = [Operand::Splat(0.0); Map::MAX_ARGS];
        for ((operand, input), buffer) in operands.iter_mut().zip(&self.inputs).zip(input_buffers) {
            let buffer_len = buffer.len().min(range.len());
            let buffer = &mut buffer[..buffer_len];
            *operand = match input {
                Input::Output => {
                    outputs[0].widen_into(range.clone(), buffer);
                    Operand::Slice(buffer)
                }
                _ => input.operand(start + range.start..start + range.end, self.sizes, buffer),
            };
        }
        let n_outputs = outputs.len();
        let mut results: [&mut [f32]; Map::MAX_ARGS] = std::array::from_fn(|_| &mut [][..]);
        for ((result, output), buffer) in results.iter_mut().zip(outputs.iter_mut()).zip(output_buffers.iter_mut()) {
            *result = output.in_f32(range.clone(), buffer);
        }
        match (self.form, operands[0]) {
            (Some((form, drawn)), Operand::Slice(value)) => {
                let further = match operands[1] {
                    Operand::Slice(further) if drawn.is_none() => further,
                    _ => &[],
                };
                results[0].copy_from_slice(value);
                vectorised(inlined!(|| form.run(further, drawn, start + range.start, results[0])));
            }
            _ => self.evaluator.run_block(&operands[..self.inputs.len()], &mut results[..n_outputs], scratch),
        }
        for (output, buffer) in outputs.iter_mut().zip(output_buffers.iter()) {
            output.keep(range.clone(), buffer);
        }
    }
}
