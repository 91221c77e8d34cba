//! Models of tables whose columns are numbers and categories, some of them missing: preprocessing, targets, networks, and folders of trained models.
//!
//! A [`Preprocessing`] is fitted to the training rows and then makes features of any rows with the same columns, as a
//! [`RowSource`](brisk_loader::RowSource). A [`Target`] turns labels into what a [`Task`](crate::Task) takes and outputs into predictions. A
//! [`TabularModel`] is both with a trained network; [`save`](TabularModel::save) writes it to a folder, and [`load`](TabularModel::load) reads it back.
//!
//! # Examples
//! ```
//! use brisk_loader::{Rows, split};
//! use brisk_nn::tensor::program::Device;
//! use brisk_train::Trainer;
//! use brisk_train::tabular::{Columns, Network, Preprocessing, Scaling, TabularModel, Target};
//!
//! // Two columns of numbers, of which one is sometimes missing.
//! let x = |row: usize| [(row as f32 * 0.7549).fract() * 100.0, if row % 7 == 0 { f32::NAN } else { (row as f32 * 0.5698).fract() }];
//! let labels: Vec<f32> = (0..600).map(|row| 2.0 * x(row)[0] + if row % 7 == 0 { 300.0 } else { 100.0 * x(row)[1] }).collect();
//! let rows = Rows::new((0..600).flat_map(x).collect::<Vec<f32>>(), labels, 2)?;
//! let columns = Columns::numbers(["age", "share"]);
//! let [train, valid] = split(&rows, 7, [0.8, 0.2])?;
//!
//! let preprocessing = Preprocessing::fit(&columns, &train, Scaling::Standard)?;
//! let target = Target::numbers("price", "train", &train)?;
//! let network = Network::Mlp { hidden: vec![32] };
//! let mut model = TabularModel::new(7, preprocessing, target, network);
//! let [train, valid] = [model.rows(&columns, &train)?, model.rows(&columns, &valid)?];
//! let task = model.task();
//! Trainer::new(&Device::cpu()?).batch_rows(32).max_epochs(30).learning_rate(1e-2).fit(model.model_mut(), &*task, &train, &valid)?;
//!
//! let predictor = model.predictor(&Device::cpu()?)?;
//! let predictions = predictor.predict(&columns, &rows)?;
//! let error = (0..600).map(|row| (predictions.numbers()[row] - f64::from(rows.labels()[row])).abs()).sum::<f64>() / 600.0;
//! assert!(error < 20.0, "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod columns;
mod description;
mod detect;
mod error;
mod model;
mod network;
mod normal;
mod number_source;
mod odd_values;
mod predictions;
mod preprocessing;
mod read_rows;
mod reading;
mod scale;
mod scratch;
mod target;
mod text_options;
mod warning;

pub use adapter::{FarValues, Preprocessed, UnseenValues};
pub use columns::Columns;
pub use detect::{DetectOptions, Detected};
pub use error::{FewLabels, OddCells, TabularError, WrongValue};
pub use model::{TabularModel, TabularPredictor};
pub use network::Network;
pub use predictions::Predictions;
pub use preprocessing::{NumberColumn, Preprocessing};
pub use read_rows::TabularRows;
pub use reading::{Decoding, Reading};
pub use scale::{ColumnScale, Scaling};
pub use target::{Target, TargetKind};
pub use text_options::TextOptions;
pub use warning::{TabularRemedy, TabularWarning};
