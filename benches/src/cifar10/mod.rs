//! The CIFAR-10 recipes: speed and first losses beside PyTorch, augmentation beside torchvision, the ladder of tricks, and what the full
//! recipes take by plan.

mod augment;
mod images;
mod ladder;
mod plan;
mod speed;

use anyhow::Result;

use crate::command_line::{Cifar10, Cifar10Part, selected};
use crate::options::Options;
use crate::row::Table;

pub(crate) fn run(options: &Options, suite: &Cifar10) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for part in selected(&suite.only) {
        match part {
            Cifar10Part::Speed => tables.push(speed::run(options, suite.full)?),
            Cifar10Part::Augment => tables.push(augment::run(options)?),
            Cifar10Part::Plan => tables.push(plan::run(options)?),
            Cifar10Part::Ladder => tables.push(ladder::run(options, suite)?),
        }
    }
    Ok(tables)
}
