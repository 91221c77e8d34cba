//! Classes of rows with equal labels.

use std::collections::HashMap;

/// The class of every row, numbered in the order of first occurrence.
#[derive(Debug)]
pub(crate) struct Classes {
    pub(crate) of_row: Vec<u32>,
    pub(crate) n_classes: usize,
}

impl Classes {
    /// Equal labels are one class; so are all missing labels (NaN).
    pub(crate) fn of(labels: &[f32]) -> Self {
        let mut numbers = HashMap::new();
        let of_row = labels.iter().map(|&label| {
            // Zero has two signs, and NaN has many bit patterns.
            let bits = if label.is_nan() { f32::NAN.to_bits() } else { (label + 0.0).to_bits() };
            let next = numbers.len() as u32;
            *numbers.entry(bits).or_insert(next)
        });
        let of_row = of_row.collect();
        Self { of_row, n_classes: numbers.len() }
    }

    /// The number of rows in each class.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.n_classes];
        for &class in &self.of_row {
            counts[class as usize] += 1;
        }
        counts
    }
}
