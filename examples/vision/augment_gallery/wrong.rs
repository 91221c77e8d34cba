use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use brisk_loader::{RowBuffers, RowSelection, RowSource as _};
use brisk_train::{Classification, Model};
use brisk_vision::Recipe;
use brisk_vision_examples::images::ImageRows;

use crate::grid::Grid;

/// The number of rows of the picture.
const N_ROWS: usize = 6;

/// The wrong predictions of a model, the most confident first.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) n_images: usize,
    pub(crate) n_wrong: usize,
    /// The most confident ones, at most as many as fit into the picture.
    predictions: Vec<Prediction>,
}

/// A wrong prediction.
#[derive(Debug)]
struct Prediction {
    row: usize,
    class: usize,
    predicted: usize,
    /// The probability of the predicted class.
    confidence: f32,
}

/// Predicts the class of each image.
///
/// # Errors
/// If the file is not the model of this recipe, or its classes are not those of the images.
pub(crate) fn predictions(model: &Path, recipe: &Recipe, rows: &ImageRows<'_>, n_classes: usize) -> Result<Wrong> {
    let model = Model::load(model, |params| recipe.build(params))?;
    // Predictions are independent of the classes; an evaluation compares their names with those of the training.
    model.evaluate(&Classification::of(n_classes), rows)?;
    let logits = model.predict(rows)?;
    let labels = brisk_loader::labels_of(rows)?;
    let mut predictions = Vec::new();
    for (row, (logits, label)) in logits.chunks_exact(n_classes).zip(&labels).enumerate() {
        let (predicted, largest) = logits
            .iter()
            .copied()
            .enumerate()
            .fold((0, f32::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best });
        let confidence = 1.0 / logits.iter().map(|logit| (logit - largest).exp()).sum::<f32>();
        let class = *label as usize;
        if class != predicted {
            predictions.push(Prediction { row, class, predicted, confidence });
        }
    }
    let n_wrong = predictions.len();
    predictions.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Ok(Wrong { n_images: labels.len(), n_wrong, predictions })
}

/// The images of the most confident ones.
///
/// # Errors
/// If they cannot be read.
pub(crate) fn grid(wrong: &Wrong, rows: &ImageRows<'_>, image: [usize; 3], n_columns: usize) -> Result<Grid> {
    let mut grid = Grid::new(image, n_columns);
    for prediction in wrong.predictions.iter().take(N_ROWS * n_columns) {
        let (mut bytes, mut label) = (vec![0; rows.n_cols()], [0.0]);
        rows.gather(RowSelection::Range(prediction.row..prediction.row + 1), RowBuffers::new(&mut bytes, &mut label))?;
        grid.push(&bytes);
    }
    Ok(grid)
}

/// Their classes, in the order of the picture.
pub(crate) fn list(wrong: &Wrong, classes: &[String], n_columns: usize) -> String {
    let mut text = "row column predicted confidence class\n".to_owned();
    for (i, prediction) in wrong.predictions.iter().take(N_ROWS * n_columns).enumerate() {
        let (predicted, class) = (&classes[prediction.predicted], &classes[prediction.class]);
        let (row, column) = (i / n_columns + 1, i % n_columns + 1);
        writeln!(text, "{row} {column} {predicted} {:.3} {class}", prediction.confidence).expect("strings do not fail");
    }
    text
}
