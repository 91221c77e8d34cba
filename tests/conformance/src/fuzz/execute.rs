//! Runs a program on a device.

use anyhow::{Context, Result};
use brisk_program::{Device, Rewrite};
use brisk_tensor::Precision;

use super::program::{Program, name};
use crate::algebra;
use crate::case::{Case, Outputs};
use crate::form::Form;

/// How a program is run.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) device: Device,
    pub(crate) rewrites: &'static [Rewrite],
}

impl Way {
    pub(crate) fn run(&self, program: &Program, precision: Precision) -> Result<Outputs> {
        algebra::run_program(&case(program), &self.device, Form::Stored(precision), self.rewrites)?
            .context("an operation that is not known")
    }
}

/// The program as a conformance case without expected results, and with a gradient of the output that depends on its shape only.
fn case(program: &Program) -> Case {
    let mut case = Case::new("algebra", program.params());
    for (i, input) in program.inputs.iter().enumerate() {
        case.insert(format!("in.{}", name(i)), &input.shape, input.values.clone());
        if input.has_gradient {
            case.insert(format!("grad.{}", name(i)), &input.shape, Vec::new());
        }
    }
    let shape = program.shapes().and_then(|mut shapes| shapes.pop()).unwrap_or_default();
    case.insert("grad_out.y".to_owned(), &shape, output_gradient(&shape));
    case
}

/// The gradient of the output: multiples of 1/16 between -2 and 2, which f16 and bf16 have.
pub(crate) fn output_gradient(shape: &[usize]) -> Vec<f32> {
    (0..shape.iter().product()).map(|i: usize| ((i * 37 + 11) % 64) as f32 / 16.0 - 1.9375).collect()
}
