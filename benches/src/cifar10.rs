//! The CIFAR-10 recipes: speed and first losses compared with PyTorch, augmentation compared with torchvision, the ladder of
//! tricks, and the planned cost of the full recipes.

mod augment;
mod images;
mod ladder;
mod plan;
mod speed;

use anyhow::Result;
use brisk_nn::tensor::Precision;
use serde_json::Value;

use crate::command_line::{Cifar10, Cifar10Part, ProductPrecision, selected};
use crate::options::Options;
use crate::row::Table;

impl From<ProductPrecision> for Precision {
    fn from(precision: ProductPrecision) -> Self {
        match precision {
            ProductPrecision::F32 => Self::F32,
            ProductPrecision::F16 => Self::F16,
            ProductPrecision::Bf16 => Self::Bf16,
        }
    }
}

/// Runs the selected benchmarks. Returns tables of figures, and the JSON rows of the table that is printed while it is measured.
pub(crate) fn run(options: &Options, suite: &Cifar10) -> Result<(Vec<Table>, Vec<Value>)> {
    let (mut tables, mut printed) = (Vec::new(), Vec::new());
    for part in selected(&suite.only) {
        match part {
            Cifar10Part::Speed => tables.push(speed::run(options, suite)?),
            Cifar10Part::Augment => tables.push(augment::run(options)?),
            Cifar10Part::Plan => tables.push(plan::run(options)?),
            Cifar10Part::Ladder => printed = ladder::run(options, suite)?,
        }
    }
    Ok((tables, printed))
}
