//! A model that is trained again keeps its standardisation, and says so where the rows are of another scale.

use brisk_loader::Rows;
use brisk_nn::{Activation, Linear};
use brisk_train::{Error, Model, Regression, Standardisation, Trainer, Warning};

use crate::gpu::cpu;
use crate::run::noise;

const N_COLS: usize = 4;

/// Uniform columns with mean 2, times `factor`; the last one times 1 only.
fn rows(factor: f32) -> Rows {
    let value = |i: usize| (2.0 + noise(i / N_COLS, i % N_COLS)) * if i % N_COLS == N_COLS - 1 { 1.0 } else { factor };
    let x = (0..100 * N_COLS).map(value).collect::<Vec<f32>>();
    let labels = (0..100).map(|row| noise(row, 9)).collect();
    Rows::new(x, labels, N_COLS).expect("as many labels as rows")
}

/// The columns that a second run on `second` warns about.
fn check(
    first: Option<Standardisation>,
    second: Option<Standardisation>,
    factor: f32,
    expected: Option<usize>,
) -> Result<(), Error> {
    let mut model = Model::new(7, |params| Linear::new(params, "line", N_COLS, 1, Activation::identity()));
    let run = |model: &mut _, scale: Option<Standardisation>, rows: &Rows| {
        let trainer = Trainer::new(&cpu(1)).batch_rows(50).max_epochs(1);
        let mut trainer = match scale {
            None => trainer,
            Some(scale) => trainer.standardisation(scale),
        };
        trainer.fit(model, &Regression::mse(), rows, rows)
    };
    run(&mut model, first, &rows(1.0))?;
    let report = run(&mut model, second, &rows(factor))?;
    let column = |warning: &Warning| match warning {
        Warning::KeptStandardisation { column, .. } => Some(*column),
        _ => None,
    };
    assert_eq!(report.warnings.iter().find_map(column), expected, "times {factor}");
    Ok(())
}

#[test]
fn rows_of_another_scale_are_a_warning() -> Result<(), Error> {
    let of = |factor| Standardisation::of("train", &rows(factor)).map(Some);
    check(None, None, 1.0, None)?;
    check(None, None, 1.5, None)?;
    check(None, None, 1000.0, Some(0))?;
    check(None, None, 0.001, Some(0))?;
    check(None, of(1000.0)?, 1000.0, None)?;
    check(Some(Standardisation::none(N_COLS)), None, 1000.0, None)
}
