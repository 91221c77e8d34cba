#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(any(doc, doctest))]
pub mod guide;

mod calibration;
mod class_rows;
mod columns;
mod description;
mod detect;
mod dictionaries;
mod digest;
mod ensemble;
mod equal_rows;
mod error;
mod fitting;
mod folds;
mod importance;
mod intervals;
mod kept_cells;
mod known_target;
mod mean;
mod model;
mod model_folder;
mod network;
mod normal;
mod number_calibration;
mod number_source;
mod odd_values;
mod predicted_rows;
mod predictions;
mod preprocessing;
mod read_rows;
mod reading;
mod recipe;
mod row_column;
mod scale;
mod scale_choice;
mod scratch;
mod segments;
mod several;
mod split_warnings;
mod splitting;
mod surveyed;
mod tabular_predictor;
mod target;
mod target_kind;
mod target_scale;
mod text_options;
mod threshold;
mod validated;
mod warning;
mod weights;

pub use calibration::{Calibration, ClassCalibration};
pub use columns::Columns;
pub use detect::{DetectOptions, Detected};
pub use error::{Error, FewLabels, OddCells, WrongValue};
pub use fitting::{Fitted, Fitting};
pub use folds::FoldScore;
pub use importance::{ColumnImportance, Importance, ImportanceOptions};
pub use intervals::{IntervalScore, Intervals};
pub use known_target::{KnownScores, KnownTarget};
pub use model::TabularModel;
pub use network::{Member, Network};
pub use number_calibration::NumberCalibration;
pub use predicted_rows::{PredictedRows, UnfamiliarValues};
pub use predictions::Predictions;
pub use preprocessing::{
    FarValues, MissingValues, NumberColumn, Preprocessed, PreprocessedError, Preprocessing, PreprocessingOptions, UnseenValues,
};
pub use read_rows::TabularRows;
pub use reading::{Decoding, Reading};
pub use recipe::{Effort, Recipe};
pub use scale::{ColumnScale, Scaling};
pub use scale_choice::TargetScaleReason;
pub use segments::{Segment, SegmentErrors, SegmentOptions, SegmentScore, SegmentValues};
pub use several::TabularModels;
pub use splitting::Splitting;
pub use tabular_predictor::TabularPredictor;
pub use target::Target;
pub use target_kind::TargetKind;
pub use target_scale::TargetScale;
pub use text_options::TextOptions;
pub use threshold::{Threshold, ThresholdMetric};
pub use warning::{TabularRemedy, TabularWarning};
pub use weights::ClassWeights;
