//! Runs that must fail rather than report a wrong result.

use std::fs;

use anyhow::{Context, Result};
use brisk_table::{Schema, TableWriter, Weights};
use fastrand::Rng;

use super::{Cases, Part, Prepared};
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::training::{csv, results};

pub(crate) const PART: Part = Part { name: PartName::WrongResults, weight: 0.0, prepare: |_| Prepared::ready(WrongResults) };

struct WrongResults;

/// The smallest number above 0.
const SMALLEST: f32 = f32::from_bits(1);

const PROBES: [fn(&mut Case<'_>) -> Result<()>; 13] = [
    |case| one_weight(case, "higgs", "f16", SMALLEST),
    |case| one_weight(case, "higgs", "f32", SMALLEST),
    |case| one_weight(case, "higgs", "bf16", SMALLEST),
    |case| one_weight(case, "higgs", "f32", f32::MAX),
    |case| one_weight(case, "data_parallel", "f16", SMALLEST),
    |case| one_weight(case, "data_parallel", "f32", SMALLEST),
    |case| one_weight(case, "data_parallel", "f32", f32::MAX),
    |case| one_weight(case, "data_parallel", "f16", f32::MAX),
    |case| larger_than_the_machine(case, "higgs"),
    |case| larger_than_the_machine(case, "data_parallel"),
    |case| one_data_folder(case, &[["100", "0"], ["104", "0"]]),
    |case| one_data_folder(case, &[["104", "0"], ["100", "0"], ["500", "0"], ["100", "1"]]),
    replaced_rows,
];

impl Cases for WrongResults {
    fn n_listed(&self) -> u64 {
        PROBES.len() as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        PROBES[case.index as usize % PROBES.len()](case)
    }
}

/// One weight for all rows changes nothing: the run learns as much as with weights of 1, or is refused.
///
/// With the smallest weights gradients overflow, so that in f16 every step is skipped; the sum of the largest weights is
/// infinite.
fn one_weight(case: &mut Case<'_>, program: &str, precision: &str, weight: f32) -> Result<()> {
    let mut auc = Vec::new();
    for (data, weight) in [("plain", 1.0), ("weighted", weight)] {
        let mut rng = Rng::with_seed(case.index);
        for (name, n_rows) in [("train", 300), ("test", 200)] {
            let schema = Schema { weights: Weights::Present, ..Schema::shaped(&[3]) };
            let mut writer = TableWriter::create(case.path(&format!("{data}-{name}.safetensors")), schema)?;
            for _ in 0..n_rows {
                let row = [(); 3].map(|()| rng.f32() - 0.5);
                writer.push_weighted(&row, &[f32::from(u8::from(row.iter().sum::<f32>() > 0.0))], &[weight])?;
            }
            writer.finish()?;
        }
        let [train, test] = ["train", "test"].map(|name| format!("{data}-{name}.safetensors"));
        let run = case.program(program).args(["--train", &train, "--test", &test, "--hidden", "8", "--lr", "0.05"]);
        let run = run.args(["--batch", "32", "--epochs", "4", "--precision", precision, "--json", "out.json"]);
        let ended = case.end(run)?;
        if data == "plain" && !case.expect(ended.success(), Kind::Wrong, "a run of weighted rows fails", &ended) {
            return Ok(());
        }
        if ended.success() {
            let found = results(&case.path("out.json"))?;
            let found = found.into_iter().find_map(|(name, value)| value.as_f64().filter(|_| name == "test_auc"));
            auc.push((found.unwrap_or(f64::NAN), ended));
        }
    }
    if let [(plain, _), (weighted, ended)] = auc.as_slice()
        && ((plain - weighted).abs() >= 0.03 || weighted.is_nan())
    {
        let what = format!("{program} in {precision} succeeds and has learnt nothing from rows whose weights are {weight:e}");
        case.find(Kind::Wrong, what, format!("test AUC {weighted}, with weights of 1 {plain}\n{ended}"));
    }
    Ok(())
}

/// Layers whose parameters are four times the machine's memory.
fn larger_than_the_machine(case: &mut Case<'_>, program: &str) -> Result<()> {
    const WIDTH: u64 = 65536;
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    let n_layers = 2 + total_kib.unwrap_or(64_u64 << 20) * 1024 / (WIDTH * WIDTH);
    fs::write(case.path("in.csv"), csv(&mut case.rng, 200, 3))?;
    let hidden = vec![WIDTH.to_string(); n_layers as usize].join(",");
    let run = case.program(program).args(["--train", "in.csv", "--test", "in.csv", "--epochs", "1", "--hidden", &hidden]);
    // With a memory limit, since a program that tried would make the machine unusable.
    case.refuse(run.bounded(), &format!("{program} takes a network larger than the machine"))?;
    Ok(())
}

/// Runs of several sizes and seeds that share a data folder give the results that each gives with its own folder.
fn one_data_folder(case: &mut Case<'_>, runs: &[[&str; 2]]) -> Result<()> {
    for (i, [rows, seed]) in runs.iter().enumerate() {
        let run = |data: &str, json: &str| {
            let run = case.program("higgs").args(["--rows", rows, "--seed", seed, "--epochs", "2", "--hidden", "8"]);
            run.args(["--data-dir", data, "--json", json])
        };
        let (own, shared) = (run(&format!("own-{i}"), "own.json"), run("shared", "shared.json"));
        for run in [own, shared] {
            if case.succeed(run, "higgs fails on simulated rows")?.is_none() {
                return Ok(());
            }
        }
        let (own, shared) = (results(&case.path("own.json"))?, results(&case.path("shared.json"))?);
        if own != shared {
            let detail = format!("--rows {rows} --seed {seed}: {shared:?}, with a folder of its own {own:?}");
            case.find(Kind::Wrong, "higgs takes simulated rows of an earlier run with other settings", detail);
        }
    }
    Ok(())
}

/// A file of rows is replaced by another of the same length between two runs: the second run uses the new rows.
fn replaced_rows(case: &mut Case<'_>) -> Result<()> {
    let rows = |rng: &mut Rng| -> String {
        let row = |_| format!("{},{:.6},{:.6}\n", u8::from(rng.bool()), rng.f64(), rng.f64());
        (0..300).map(row).collect()
    };
    let texts = [rows(&mut case.rng), rows(&mut case.rng)];
    let mut found = Vec::new();
    for (data, text) in [("shared", &texts[0]), ("shared", &texts[1]), ("own", &texts[1])] {
        fs::write(case.path("in.csv"), text).context("cannot write the rows")?;
        let run = case.program("higgs").args(["--train", "in.csv", "--test", "in.csv", "--epochs", "2", "--hidden", "8"]);
        if case.succeed(run.args(["--data-dir", data, "--json", "out.json"]), "higgs fails on a file of rows")?.is_none() {
            return Ok(());
        }
        found.push(results(&case.path("out.json"))?);
    }
    if found[1] != found[2] {
        let detail = format!("{:?}, with a folder of its own {:?}", found[1], found[2]);
        case.find(Kind::Wrong, "higgs takes the rows of a file that was replaced", detail);
    }
    Ok(())
}
