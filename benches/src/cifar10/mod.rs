//! The CIFAR-10 recipes: speed and first losses beside PyTorch, augmentation beside torchvision, the ladder of tricks, and what the full
//! recipes take by plan.

mod augment;
mod images;
mod ladder;
mod plan;
mod speed;

use anyhow::Result;
use serde_json::Value;

use crate::command_line::{Cifar10, Cifar10Part, selected};
use crate::options::Options;
use crate::row::Table;

/// Tables of figures, and the JSON rows of those that are printed as they are measured.
pub(crate) fn run(options: &Options, suite: &Cifar10) -> Result<(Vec<Table>, Vec<Value>)> {
    let (mut tables, mut printed) = (Vec::new(), Vec::new());
    for part in selected(&suite.only) {
        match part {
            Cifar10Part::Speed => tables.push(speed::run(options, suite.full)?),
            Cifar10Part::Augment => tables.push(augment::run(options)?),
            Cifar10Part::Plan => tables.push(plan::run(options)?),
            Cifar10Part::Ladder => printed = ladder::run(options, suite)?,
        }
    }
    Ok((tables, printed))
}
