//! The time that a `TabularPredictor` takes for one row and for more, and its parts, of a model that is loaded from its folder.
//!
//! `cargo bench -p brisk-tabular --bench predict`: an ensemble of 32 members as `Effort::Good` trains it, for generated rows with
//! the columns of the table *adult*: 6 numbers and 8 categories. `-- FOLDER FILE` measures a model of your own with the rows of a
//! file. `BRISK_DEVICE` picks the device, the CPU with all threads by default. `-- --smoke` is tiny.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::hint::black_box;
use std::time::Instant;

use brisk_loader::{RowSource, Rows, Subset};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_table::Dictionary;
use brisk_tabular::{Columns, Network, Preprocessing, Recipe, Scaling, TabularModel, Target};
use brisk_train::{FeedElement, Predictor};

type AnyError = Box<dyn std::error::Error>;

const SIZES: [usize; 4] = [1, 16, 256, 4096];
/// How many values the categories of adult have.
const CATEGORIES: [usize; 8] = [8, 16, 7, 14, 6, 5, 2, 41];
const N_NUMBERS: usize = 6;

fn main() -> Result<(), AnyError> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let device = match Selection::from_env() {
        Selection::Best => Device::cpu()?,
        asked => Device::builder().selection(asked).open()?,
    };
    match &args[..] {
        [folder, file] => {
            let model = TabularModel::load(folder)?;
            let rows = model.read_rows(file)?;
            measure(&device, &model, &rows.columns, &rows.table, 2000)
        }
        args => {
            let is_smoke = args.iter().any(|arg| arg == "--smoke");
            let (columns, rows) = generated(if is_smoke { 5000 } else { 32_000 })?;
            let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
            let target = Target::detect("income", &["low".to_owned(), "high".to_owned()], None, &rows)?;
            let of_train = preprocessing.over(&columns, &rows)?.with_target(&target).to_rows("train")?;
            let mut network = Recipe::quick(&of_train, &target).network;
            if let Network::TabM { n_members, .. } = &mut network {
                *n_members = 32;
            }
            let folder = tempfile::tempdir()?;
            TabularModel::new(7, preprocessing, target, network).save(folder.path())?;
            measure(&device, &TabularModel::load(folder.path())?, &columns, &rows, if is_smoke { 3 } else { 2000 })
        }
    }
}

/// Rows with the columns of adult.
fn generated(n: usize) -> Result<(Columns, Rows), AnyError> {
    let draw = |row: usize, col: usize| ((row * 17 + col) as f32 * 0.754_877_7).fract();
    let dictionary = |(col, n_values): (usize, &usize)| {
        Dictionary::new(format!("c{col}"), (0..*n_values).map(|value| format!("value {value}")))
    };
    let categories = CATEGORIES.iter().enumerate().map(dictionary).collect::<Result<_, _>>()?;
    let columns = Columns { categories, ..Columns::numbers((0..N_NUMBERS).map(|col| format!("x{col}"))) };
    let features: Vec<f32> = (0..n).flat_map(|row| (0..N_NUMBERS).map(move |col| 100.0 * draw(row, col))).collect();
    let code = |row: usize, col: usize| 1 + (draw(row, 8 + col) * CATEGORIES[col] as f32) as u32 % CATEGORIES[col] as u32;
    let codes: Vec<u32> = (0..n).flat_map(|row| (0..CATEGORIES.len()).map(move |col| code(row, col))).collect();
    let labels: Vec<f32> = (0..n).map(|row| f32::from(u8::from(draw(row, 0) > 0.7))).collect();
    Ok((columns, Rows::new(features, labels, N_NUMBERS)?.with_categories(codes, CATEGORIES.len())?))
}

fn measure<S: RowSource<Feature: FeedElement>>(
    device: &Device,
    model: &TabularModel,
    columns: &Columns,
    rows: &S,
    n_repeats: usize,
) -> Result<(), AnyError> {
    let predictor = model.predictor(device)?;
    let network = Predictor::new(device, model.model(), model.preprocessing().feature_names().len())?;
    println!(
        "{} of {} parameters on {}, medians in ms",
        model.network().kind(),
        model.model().params().n_trained(),
        device.info()
    );
    println!("| rows | predict | rows/s | its network | the rest | other columns |");
    println!("|---|---|---|---|---|---|");
    for n_rows in SIZES.into_iter().filter(|&n_rows| n_rows <= rows.n_rows()) {
        let some = Subset::of_rows(rows, (0..n_rows as u32).collect::<Vec<_>>())?;
        let n_repeats = (n_repeats * 20 / (n_rows + 20)).max(3);
        let prepared = model.preprocessing().over(columns, &some)?.to_rows("predicted")?;
        let all = median(n_repeats, || Ok(predictor.predict(columns, &some)?))?;
        let of_network = median(n_repeats, || Ok(network.predict(prepared.features(), prepared.categories())?))?;
        // What the first call takes longer, and each whose columns are not those of the one before.
        let other_columns = median(n_repeats, || Ok(model.preprocessing().over(columns, &some)?))?;
        let (rate, rest) = (n_rows as f64 / all * 1e3, (all - of_network).max(0.0));
        println!("| {n_rows} | {all:.4} | {rate:.0} | {of_network:.4} | {rest:.4} | {other_columns:.4} |");
    }
    Ok(())
}

/// The median time of a call in milliseconds, after a few that are not timed.
fn median<T>(n_repeats: usize, mut call: impl FnMut() -> Result<T, AnyError>) -> Result<f64, AnyError> {
    for _ in 0..n_repeats.div_ceil(10) {
        black_box(call()?);
    }
    let mut times = Vec::with_capacity(n_repeats);
    for _ in 0..n_repeats {
        let start = Instant::now();
        black_box(call()?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[n_repeats / 2])
}
