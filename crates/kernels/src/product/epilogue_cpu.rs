//! Epilogues of twins. Results are bit-identical to those of [`Map`](crate::Map)s of the same expressions; common activations
//! have plain loops, without an evaluator for each row.

use std::sync::Arc;

use crate::expr::{BLOCK_LEN, Evaluator, Operand};
use crate::kernel::twin::TwinArgs;
use crate::map::form::{Form, Further};
use crate::product::epilogue::{Epilogue, EpilogueOperand};
use crate::product::prepared::How;
use crate::random::draws_cpu::Drawn;
use crate::sizes::in_u32;

/// An [`Epilogue`] on the CPU, for all rows of a result.
#[derive(Debug)]
pub(crate) struct Finish {
    operand: Option<EpilogueOperand>,
    drawn: Option<Drawn>,
    how: Arc<How>,
}

impl Finish {
    /// Leaves sums unchanged.
    pub(crate) fn none() -> Self {
        Self { operand: None, drawn: None, how: Arc::new(How::ByForm(Form::NONE)) }
    }

    /// `args` has the state of the run, if the epilogue reads random numbers.
    pub(crate) fn new(epilogue: &Epilogue, args: &TwinArgs<'_>) -> Self {
        let drawn = epilogue.draws().map(|draws| Drawn::new(&draws, args.read("state")));
        let how = epilogue.prepared.0.get_or_init(|| Arc::new(how_of(epilogue)));
        Self { operand: epilogue.operand(), drawn, how: how.clone() }
    }

    /// The elements of the further argument that belong to `len` results starting at column `col` of row `row`, of `n` columns:
    /// they are within one row, unless they are whole rows.
    pub(crate) fn operand_range(&self, n: usize, row: usize, col: usize, len: usize) -> std::ops::Range<usize> {
        match self.operand {
            None => 0..0,
            Some(EpilogueOperand::Row) => col..col + len.min(n),
            Some(EpilogueOperand::Matrix) => row * n + col..row * n + col + len,
        }
    }

    /// Finishes `y`, part of a row or whole rows whose first element has index `at` in the result, with the elements of
    /// [`operand_range`](Self::operand_range).
    #[inline(always)]
    pub(crate) fn run(&self, operand: &[f32], at: usize, y: &mut [f32]) {
        match &*self.how {
            How::ByForm(form) => form.run(operand, self.drawn, at, y),
            How::ByEvaluator(evaluator) => {
                let n = if self.operand == Some(EpilogueOperand::Row) { operand.len().max(1) } else { y.len().max(1) };
                let operand = self.operand.map(|_| Operand::Slice(operand));
                for (i, y) in y.chunks_mut(n).enumerate() {
                    self.evaluate(evaluator, operand, at + i * n, y);
                }
            }
        }
    }

    /// Evaluates the expression for `y`, which starts at index `at` of the result, and as many elements of the further argument.
    fn evaluate(&self, evaluator: &Evaluator, operand: Option<Operand<'_>>, at: usize, y: &mut [f32]) {
        let Some(drawn) = self.drawn else {
            return evaluator.run_in_place(y, operand.as_slice());
        };
        let mut numbers = [0.0; BLOCK_LEN];
        for start in (0..y.len()).step_by(BLOCK_LEN) {
            let range = start..(start + BLOCK_LEN).min(y.len());
            let numbers = &mut numbers[..range.len()];
            drawn.fill(in_u32(at + start), numbers);
            let operand = operand.map(|operand| operand.slice(range.clone()));
            let inputs: Vec<Operand<'_>> = operand.into_iter().chain([Operand::Slice(numbers)]).collect();
            evaluator.run_in_place(&mut y[range], &inputs);
        }
    }
}

/// How `epilogue` is computed.
fn how_of(epilogue: &Epilogue) -> How {
    let further = match epilogue.operand() {
        None => Further::None,
        Some(EpilogueOperand::Row) => Further::Row,
        Some(EpilogueOperand::Matrix) => Further::Matrix,
    };
    let expr = epilogue.expr();
    match Form::of(expr, further, epilogue.draws().is_some()) {
        Some(form) => How::ByForm(form),
        None => How::ByEvaluator(Evaluator::new(std::slice::from_ref(expr))),
    }
}
