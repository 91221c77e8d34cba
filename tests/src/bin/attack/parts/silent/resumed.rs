//! Runs that are resumed with something changed, and rows that a second file has in another order.

use anyhow::{Result, ensure};
use brisk_loader::Rows;
use brisk_nn::{Activation, Augment, Flatten, Linear, Sequential};
use brisk_train::{Checkpoint, Classification, FitReport, Model, RunFolder};
use brisk_vision::{AugmentedImages, Border, Flip, ImageAugmentation, MixedImages, Mixing};

use super::tables::{part, text};
use super::training::{refused as is_refused, trainer};
use super::{Row, computed, either, refused, refused_or_said, row, within};

const IMAGE: [usize; 3] = [4, 4, 1];
const N_COLS: usize = 16;

/// How the images of a run are changed before it trains on them.
struct Changes {
    augmentation: ImageAugmentation,
    mixing: Option<Mixing>,
    mixing_seed: u64,
}

impl Changes {
    fn new() -> Self {
        let augmentation = ImageAugmentation { pad: 1, flip: Flip::Random, seed: 5, ..ImageAugmentation::default() };
        Self { augmentation, mixing: Some(Mixing::Mixup { alpha: 0.4 }), mixing_seed: 5 }
    }

    fn augment(&self) -> Box<dyn Augment> {
        let images = AugmentedImages { image: IMAGE, augmentation: self.augmentation };
        match self.mixing {
            None => Box::new(images),
            Some(mixing) => Box::new(MixedImages { images, mixing, seed: self.mixing_seed }),
        }
    }

    fn train(&self, folder: &RunFolder, n_epochs: usize, from: Option<&Checkpoint>) -> Result<FitReport> {
        let pixels: Vec<u8> = (0..90 * N_COLS).map(|i| (i * i % 251) as u8).collect();
        let labels = (0..90).map(|row| (row % 3) as f32).collect::<Vec<_>>();
        let rows = Rows::new(pixels, labels, N_COLS)?;
        let [train, valid] = brisk_loader::split(&rows, 3, [0.6, 0.4])?;
        let mut model = Model::new(1, |params| {
            let layer = Linear::new(params, "layer", N_COLS, 3, Activation::identity());
            Sequential(vec![Box::new(Flatten), Box::new(layer)])
        });
        let mut trainer = trainer()?.max_epochs(n_epochs).augment(self.augment()).folder(folder);
        Ok(match from {
            None => trainer.fit(&mut model, &Classification::of(3), &train, &valid)?,
            Some(from) => trainer.resume(&mut model, from, &Classification::of(3), &train, &valid)?,
        })
    }
}

/// A run whose images are changed in another way is not resumed.
fn augmented(name: &str, change: fn(&mut Changes)) -> Row {
    within(format!("a run that is resumed with {name}"), move |dir| {
        let folder = RunFolder::create_at(&dir.join("run"))?;
        Changes::new().train(&folder, 1, None)?;
        let last = Checkpoint::load(folder.last())?;
        let mut changed = Changes::new();
        change(&mut changed);
        is_refused(changed.train(&folder, 2, Some(&last)), &["differs|differ"])?;
        // The run itself resumes.
        ensure!(Changes::new().train(&folder, 2, Some(&last))?.n_epochs == 2, "the same run is not resumed");
        Ok(())
    })
}

/// Rows of collisions: a label that two of three features decide.
fn collisions(header: &str, n: usize, first: usize, in_order: [usize; 3]) -> Vec<u8> {
    text(header, n, |i| {
        let x = [0, 1, 2].map(|col| part(first + i, col));
        let label = u8::from(x[0] + 0.5 * x[1] > 0.75);
        let cells = in_order.map(|col| format!("{:.5}", x[col]));
        format!("{label},{}", cells.join(","))
    })
}

fn with_collisions(row: Row) -> Row {
    let row = row.file("train.csv", collisions("label,x0,x1,x2", 400, 0, [0, 1, 2]));
    row.file("test.csv", collisions("label,x0,x1,x2", 200, 1000, [0, 1, 2]))
}

const PARALLEL: &str = "data_parallel --test test.csv --hidden 8 --patience 0 --data-dir data --replicas 2";

/// Trains one epoch and resumes for a second, with more options.
fn resumed(name: &str, options: &str, words: &[&str]) -> Row {
    let first = format!("{PARALLEL} --train train.csv --batch 20 --epochs 1 --out run");
    let second = format!("{PARALLEL} --train train.csv --batch 20 --epochs 2 --resume run/last.safetensors {options}");
    with_collisions(row(format!("data_parallel resumed with {name}"), &[&first, second.trim_end()], refused(words)))
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        augmented("another number of pixels to shift by", |to| to.augmentation.pad = 2),
        augmented("images that are not mirrored", |to| to.augmentation.flip = Flip::Never),
        augmented("a square cut out of each image", |to| to.augmentation.cutout = 2),
        augmented("another seed of the augmentation", |to| to.augmentation.seed = 6),
        augmented("images of other brightness", |to| to.augmentation.brightness = 0.2),
        augmented("images of other contrast", |to| to.augmentation.contrast = 0.2),
        augmented("another border of shifted images", |to| {
            to.augmentation.border = if to.augmentation.border == Border::Zero { Border::Reflect } else { Border::Zero };
        }),
        augmented("another alpha of Mixup", |to| to.mixing = Some(Mixing::Mixup { alpha: 0.5 })),
        augmented("CutMix instead of Mixup", |to| to.mixing = Some(Mixing::CutMix { alpha: 0.4 })),
        augmented("images that are not mixed", |to| to.mixing = None),
        augmented("another seed of Mixup", |to| to.mixing_seed = 6),
        resumed("another learning rate", "--lr 0.5", &["lr|learning rate|schedule"]),
        resumed("other batches", "--batch 40", &["batch"]),
        resumed("more batches per step", "--accumulate 2", &["accumulate"]),
        resumed("gradients that are clipped", "--clip 0.5", &["clip"]),
        resumed("another precision", "--precision bf16", &["bf16"]),
        resumed("gradients sent in f16", "--wire f16", &["gradients are sent", "f16", "--resume-anyway settings"]),
        resumed("another network", "--hidden 9", &["model|shape|hidden"]),
        resumed("one number that has changed", "", &["differ"]).edit("train.csv", "\n0,", "\n1,"),
        resumed("the names of two columns exchanged", "", &["x1|column"]).edit("train.csv", "label,x0,x1", "label,x1,x0"),
        with_collisions(row(
            "2^32 + 1 batches per step",
            &["higgs --train train.csv --test test.csv --hidden 8 --data-dir data --accumulate 4294967297"],
            refused(&["accumulate", "4294967297"]),
        )),
        with_collisions(row(
            "2^32 + 1 batches per step of replicas",
            &[&format!("{PARALLEL} --train train.csv --accumulate 4294967297")],
            refused(&["accumulate", "4294967297"]),
        )),
    ];
    // Another file of rows is matched by the names of its columns.
    let higgs = |test: &str, json: &str| {
        format!("higgs --train train.csv --test {test} --hidden 8 --epochs 3 --patience 0 --data-dir data --json {json}")
    };
    let second = |name: &str, expected, other: Vec<u8>| {
        with_collisions(row(name, &[&higgs("test.csv", "one.json"), &higgs("other.csv", "out.json")], expected))
            .file("other.csv", other)
    };
    rows.push(second(
        "test rows whose columns are in another order",
        either(&["x0|x2|column"], |found| {
            let [one, other] = [found.result("one.json", "test_auc")?, found.result("out.json", "test_auc")?];
            ensure!(one == other, "the area under the curve is {other}, with the columns in order {one}");
            Ok(())
        }),
        collisions("label,x2,x0,x1", 200, 1000, [2, 0, 1]),
    ));
    rows.push(second(
        "test rows with a column of another name",
        refused(&["x3|x2|column"]),
        collisions("label,x0,x1,x3", 200, 1000, [0, 1, 2]),
    ));
    rows.push(second(
        "test rows with one column less",
        refused(&["x2|column"]),
        text("label,x0,x1", 200, |i| format!("{},{:.5},{:.5}", i % 2, part(i, 0), part(i, 1))),
    ));
    rows.push(second(
        "test rows of one class",
        refused_or_said(&["label|class"], &["label|class"]),
        text("label,x0,x1,x2", 200, |i| format!("1,{:.5},{:.5},{:.5}", part(i, 0), part(i, 1), part(i, 2))),
    ));
    for (what, labels) in [("1 and 2", ["1", "2"]), ("-1 and 1", ["-1", "1"]), ("0 and 0.5", ["0", "0.5"])] {
        let other =
            text("label,x0,x1,x2", 200, |i| format!("{},{:.5},{:.5},{:.5}", labels[i % 2], part(i, 0), part(i, 1), part(i, 2)));
        let line = "higgs --train other.csv --test test.csv --hidden 8 --epochs 1 --data-dir data";
        rows.push(
            with_collisions(row(format!("labels {what} of collisions"), &[line], refused(&["label"]))).file("other.csv", other),
        );
    }
    rows.push(
        with_collisions(row(
            "rows to train on without a header",
            &["higgs --train bare.csv --test test.csv --hidden 8 --epochs 1 --data-dir data --json out.json"],
            either(&["column|header|x0"], |found| {
                let n_rows = found.result("out.json", "rows")?;
                ensure!(n_rows == 400.0, "there are {n_rows} rows, expected 400");
                Ok(())
            }),
        ))
        .file("bare.csv", collisions("", 400, 0, [0, 1, 2])[1..].to_vec()),
    );
    // A later run with the same folder of tables.
    let bad = String::from_utf8_lossy(&collisions("label,x0,x1,x2", 400, 0, [0, 1, 2])).replacen("\n1,", "\n1,odd", 1);
    let higgs_of_bad =
        |more: &str| format!("higgs --train bad.csv --test test.csv --hidden 8 --epochs 1 --data-dir data --json out.json{more}");
    rows.push(
        with_collisions(row(
            "a row that an earlier run has skipped",
            &[&higgs_of_bad(" --on-bad-row skip"), &higgs_of_bad("")],
            refused(&["bad.csv", "line"]),
        ))
        .file("bad.csv", bad),
    );
    let of_label = |label: &str, folder: &str, json: &str| {
        let files = "--train two.csv --test two.csv --hidden 8 --epochs 2 --patience 0";
        format!("higgs {files} --label {label} --data-dir {folder} --json {json}")
    };
    rows.push(
        row(
            "another label than that of an earlier run",
            &[&of_label("a", "data", "first.json"), &of_label("b", "own", "one.json"), &of_label("b", "data", "out.json")],
            computed(|found| {
                let [one, other] = [found.result("one.json", "test_auc")?, found.result("out.json", "test_auc")?];
                ensure!(one == other, "the area under the curve is {other}, with a folder of its own {one}");
                Ok(())
            }),
        )
        .file(
            "two.csv",
            text("a,b,x", 300, |i| {
                let x = part(i, 0);
                format!("{},{},{x:.5}", u8::from(part(i, 1) > 0.5), u8::from(x > 0.3))
            }),
        ),
    );
    rows.push(with_collisions(row(
        "a checkpoint of higgs for data_parallel",
        &[
            "higgs --train train.csv --test test.csv --hidden 8 --epochs 1 --batch 20 --patience 0 --data-dir data --out run",
            &format!("{PARALLEL} --train train.csv --batch 20 --epochs 2 --resume run/last.safetensors --json out.json"),
        ],
        // The same run: any number of replicas may resume it.
        computed(|found| {
            let n_epochs = found.result("out.json", "epochs")?;
            ensure!(n_epochs == 2.0, "the run has {n_epochs} epochs, expected 2");
            Ok(())
        }),
    )));
    rows
}
