use anyhow::{Context, Result, bail};
use brisk_examples::{higgs, print};
use brisk_nn::tensor::program::Selection;

/// What `--help` prints, and the documentation of the options.
fn help() -> String {
    let (data, training, results) = (higgs::DATA_HELP, higgs::TRAINING_HELP, higgs::RESULTS_HELP);
    format!(
        "\
Measures what several processes on one device do together: 1, 2, 4 of them train a small network and score rows at the same time.
Rows a second are those of all, from when the first process began to when the last ended; validation is part of training.

    cargo run --release --example shared_device
    BRISK_DEVICE=gpu cargo run --release --example shared_device -- --processes 1,2,4,8 --memory-mb 512

Sharing
    --processes A,B  how many at a time                                            [1,2,4]
    --memory-mb X    MiB that each may hold on the device                          [256]
    --device NAME    best, cpu, gpu, software, or an adapter's name or index      [BRISK_DEVICE, else best]
    --rounds N       how often each number is measured; the median is shown        [3]

Data
{data}

Training, of each process; here 20000 rows, 2 epochs, and hidden layers of 32,32 by default, and no early stopping
{training}

Results
{results}"
    )
}

/// The command line, read.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) processes: Vec<usize>,
    pub(crate) memory_bytes: usize,
    pub(crate) selection: Selection,
    pub(crate) rounds: usize,
    pub(crate) run: higgs::Options,
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let run = higgs::Options { rows: 20_000, epochs: 2, patience: 0, hidden: vec![32, 32], ..higgs::Options::default() };
        let mut options =
            Self { processes: vec![1, 2, 4], memory_bytes: 256 << 20, selection: Selection::from_env(), rounds: 3, run };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return print::result(help()).map(|()| None),
                "--processes" => options.processes = processes(&value()?)?,
                "--memory-mb" => options.memory_bytes = bytes(higgs::positive(&name, &value()?)?)?,
                "--device" => options.selection = value()?.parse().unwrap_or_default(),
                "--rounds" => options.rounds = higgs::whole(&name, &value()?, 1)?,
                _ => options.run.take(&name, value)?,
            }
        }
        options.run = options.run.finish()?;
        Ok(Some(options))
    }
}

fn processes(word: &str) -> Result<Vec<usize>> {
    let numbers = word.split(',').map(|n| higgs::whole("--processes", n.trim(), 1)).collect::<Result<Vec<_>>>()?;
    if numbers.iter().any(|&n| n > 64) {
        bail!("--processes is {word}, expected 64 at a time at most");
    }
    Ok(numbers)
}

fn bytes(mebibytes: f64) -> Result<usize> {
    if mebibytes > f64::from(1 << 24) {
        bail!("--memory-mb is {mebibytes}, expected {} at most", 1 << 24);
    }
    Ok((mebibytes * f64::from(1 << 20)) as usize)
}
