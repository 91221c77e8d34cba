use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brisk_loader::{RowBuffers, RowSelection, RowSource, with_causes};
use brisk_metrics::Scored;

use crate::encoded_image::encoded;
use crate::error::Error;
use crate::html::escaped;

/// Images with captions, such as those that a model takes for another class. They are part of the page, as PNG.
#[derive(Clone, Debug)]
pub struct ImageGrid {
    pub(crate) title: String,
    images: Vec<Image>,
}

#[derive(Clone, Debug)]
struct Image {
    size: [usize; 2],
    png: Vec<u8>,
    caption: String,
    note: String,
}

impl ImageGrid {
    /// No images yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), images: Vec::new() }
    }

    /// Adds an image of `pixels`, `[height, width, n_channels]`: grey, grey with alpha, RGB or RGBA for 1 to 4 channels.
    /// `caption` is printed below it, and `note` in smaller type.
    ///
    /// # Errors
    /// [`Error::ImagePixels`] for a wrong number of pixels or channels.
    pub fn image(
        mut self,
        [height, width]: [usize; 2],
        pixels: &[u8],
        caption: impl Into<String>,
        note: impl Into<String>,
    ) -> Result<Self, Error> {
        let refused = || Error::ImagePixels { tag: self.title.clone(), height, width, found: pixels.len() };
        let (png, _) = encoded([height, width], pixels).ok_or_else(refused)?;
        self.images.push(Image { size: [height, width], png, caption: caption.into(), note: note.into() });
        Ok(self)
    }

    /// The images of `rows` that a model predicts wrongly with the greatest probabilities, at most `n` of them: captions are the
    /// predicted classes, notes their probabilities and the classes of the labels. `scored` has the model's logits of each row,
    /// `names` the classes' names, and may be empty.
    ///
    /// # Errors
    /// [`Error::ImagePixels`] if the rows are not images of this shape; [`Error::Rows`] if they cannot be read.
    pub fn wrong_predictions<S>(
        rows: &S,
        image: [usize; 3],
        scored: &Scored<'_>,
        names: &[String],
        n: usize,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature = u8>,
    {
        let mut wrong = Vec::new();
        for (row, (logits, &label)) in scored.outputs.chunks(scored.n_outputs.max(1)).zip(scored.labels).enumerate() {
            let (predicted, probability) = prediction(logits);
            if predicted != label as usize {
                wrong.push((row, predicted, label as usize, probability));
            }
        }
        let n_wrong = wrong.len();
        wrong.sort_by(|a, b| b.3.total_cmp(&a.3));
        let name = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
        let [height, width, _] = image;
        let mut grid = Self::new(format!("Most confident wrong predictions, of {n_wrong}"));
        for (row, predicted, label, probability) in wrong.into_iter().take(n) {
            let (mut pixels, mut labels) = (vec![0; rows.n_cols()], vec![0.0; rows.n_labels()]);
            let read = rows.gather(RowSelection::Range(row..row + 1), RowBuffers::new(&mut pixels, &mut labels));
            read.map_err(|error| Error::Rows { row, reason: with_causes(&error) })?;
            let note = format!("{:.1} %, labelled {}", 100.0 * probability, name(label));
            grid = grid.image([height, width], &pixels, name(predicted), note)?;
        }
        Ok(grid)
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    pub(crate) fn html(&self) -> String {
        let image = |Image { size: [height, width], png, caption, note }: &Image| {
            let (caption, note, png) = (escaped(caption), escaped(note), STANDARD.encode(png));
            format!(
                "<figure><img alt=\"{caption}, {note}\" width=\"{width}\" height=\"{height}\" src=\"data:image/png;base64,{png}\"/><figcaption>{caption}<small>{note}</small></figcaption></figure>"
            )
        };
        format!("<div class=\"images\">{}</div>", self.images.iter().map(image).collect::<String>())
    }
}

/// The predicted class and its probability: of equal logits the first counts as the largest, as for accuracy, and a single logit
/// is that of class 1.
fn prediction(logits: &[f32]) -> (usize, f32) {
    if let [logit] = *logits {
        return (usize::from(logit > 0.0), 1.0 / (1.0 + (-logit.abs()).exp()));
    }
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let predicted = logits.iter().position(|&logit| logit == largest).unwrap_or(0);
    (predicted, 1.0 / logits.iter().map(|logit| (logit - largest).exp()).sum::<f32>())
}

#[cfg(test)]
mod tests {
    use super::prediction;

    #[test]
    fn predictions_are_those_of_accuracy() {
        assert_eq!(prediction(&[1.0, 1.0]), (0, 0.5));
        assert_eq!(prediction(&[0.0, 3.0_f32.ln()]).0, 1);
        assert!((prediction(&[0.0, 3.0_f32.ln()]).1 - 0.75).abs() < 1e-6);
        for (logit, class) in [(3.0_f32.ln(), 1), (-3.0_f32.ln(), 0)] {
            let (predicted, probability) = prediction(&[logit]);
            assert!(predicted == class && (probability - 0.75).abs() < 1e-6, "{logit}: {predicted} {probability}");
        }
    }
}
