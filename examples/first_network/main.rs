//! A first network: reads letters of 28 x 28 pixels, trains, tests, and saves the model.
//!
//! `cargo run --release --example first_network`; `-- TABLE` trains on a table of your own with labels 0 to 25, as `import` makes from EMNIST.

#![expect(clippy::print_stdout, reason = "its results")]

use std::path::PathBuf;

use anyhow::Result;
use brisk_examples::letters;
use brisk_loader::split;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Activation, Mlp, MlpConfig, Schedule};
use brisk_train::{Classification, EarlyStopping, Model, Trainer};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).map_or("target/letters/letters.safetensors".into(), PathBuf::from);
    let table = letters::table(&path, 15_600)?;
    let [train, valid, test] = split(&table, 7, [0.8, 0.1, 0.1])?;
    let sizes = MlpConfig { n_inputs: 784, hidden: vec![256], n_outputs: 26, activation: Activation::relu() };
    let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
    let report = Trainer::new(&Device::best()?)
        .batch_rows(256)
        .max_epochs(20)
        .schedule(Schedule::one_cycle(3e-3))
        .early_stopping(EarlyStopping::on("valid_accuracy").patience(5))
        .progress()
        .report("target/letters/report.html")
        .fit(&mut model, &Classification::of(26), &train, &valid)?;
    println!("best epoch: {}, {} {:.4}", report.best_epoch, report.watched, report.best_value);
    println!("test: {}", model.evaluate(&Classification::of(26), &test)?);
    model.save("target/letters/model.safetensors")?;
    Ok(())
}
