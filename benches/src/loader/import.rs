//! CSV to a table on disk, compared with the fastest readers of data-frame libraries, which only fill memory.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::higgs_table::{N_COLS, checksum, higgs_table};
use anyhow::{Result, ensure};
use brisk_table::{CsvOptions, Table, import};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use crate::options::Options;
use crate::peer::Peer;
use crate::row::{Better, Row};

const PEERS: [&str; 3] = ["pandas", "pyarrow", "polars"];

#[expect(clippy::print_stdout, reason = "the peers' versions belong to the report")]
pub(crate) fn run(options: &Options, folder: &Path) -> Result<Vec<Row>> {
    let mut peers = match &options.peers {
        Some(python) => Some(Peer::python(python, "benches/peers/csv_read.py", &[])?),
        None => None,
    };
    if let Some(peers) = &mut peers {
        println!("{}", peers.line()?);
    }

    let shortest = Text::write(folder, "shortest", options.text_bytes / 280, |text, x| write!(text, ",{x}"))?;
    let packed = shortest.packed()?;
    let mut rows = measure(&shortest, options.n_rounds, &mut peers, folder)?;
    rows.extend(measure(&packed, options.n_rounds, &mut peers, folder)?);
    drop((shortest, packed));
    let scientific = Text::write(folder, "%.18e", options.text_bytes / 740, write_scientific)?;
    rows.extend(measure(&scientific, options.n_rounds, &mut peers, folder)?);
    Ok(rows)
}

/// A text to import, whose file is removed when this is dropped.
struct Text {
    name: String,
    path: PathBuf,
    /// The size of the unpacked text.
    n_bytes: usize,
    n_rows: usize,
    /// The checksum of the values that it was printed from.
    checksum: String,
    sum: f64,
    packing: Packing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
}

impl Text {
    /// Writes a header and rows of a label and 28 columns; `value` writes a comma and the value.
    fn write(
        folder: &Path,
        name: &str,
        n_rows: usize,
        value: impl Fn(&mut String, f32) -> std::fmt::Result + Sync,
    ) -> Result<Self> {
        let path = folder.join(format!("{}.csv", name.trim_start_matches("%.")));
        let (features, labels) = higgs_table(n_rows, 1);
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let columns: Vec<String> = (0..N_COLS).map(|col| format!("x{col}")).collect();
        let header = format!("label,{}\n", columns.join(","));
        file.write_all(header.as_bytes())?;
        let mut n_bytes = header.len();
        const CHUNK: usize = 1 << 12;
        let printed = |(x, y): (&[f32], &[f32])| -> Result<String, std::fmt::Error> {
            let mut text = String::new();
            for (row, label) in x.chunks_exact(N_COLS).zip(y) {
                write!(text, "{label}")?;
                row.iter().try_for_each(|&x| value(&mut text, x))?;
                text.push('\n');
            }
            Ok(text)
        };
        for (x, y) in features.chunks(16 * CHUNK * N_COLS).zip(labels.chunks(16 * CHUNK)) {
            let texts: Result<Vec<_>, _> = x.par_chunks(CHUNK * N_COLS).zip(y.par_chunks(CHUNK)).map(printed).collect();
            for text in texts? {
                n_bytes += text.len();
                file.write_all(text.as_bytes())?;
            }
        }
        file.into_inner()?;
        let sum = features.iter().chain(&labels).map(|&x| f64::from(x)).sum();
        let checksum = checksum(&features, &labels);
        Ok(Self { name: name.to_owned(), path, n_bytes, n_rows, checksum, sum, packing: Packing::None })
    }

    /// The same text as gzip.
    fn packed(&self) -> Result<Self> {
        let path = self.path.with_extension("csv.gz");
        let mut encoder = GzEncoder::new(File::create(&path)?, Compression::new(6));
        std::io::copy(&mut File::open(&self.path)?, &mut encoder)?;
        encoder.finish()?;
        let (name, checksum) = (format!("{}, gzip", self.name), self.checksum.clone());
        Ok(Self { name, path, checksum, packing: Packing::Gzip, ..*self })
    }

    /// Reads the file as an importer must, and discards the text.
    fn unpack(&self) -> Result<usize> {
        let file = BufReader::with_capacity(1 << 18, File::open(&self.path)?);
        let mut input: Box<dyn Read> = match self.packing {
            Packing::None => Box::new(file),
            Packing::Gzip => Box::new(MultiGzDecoder::new(file)),
        };
        let (mut n_bytes, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(n_bytes),
                n => n_bytes += n,
            }
        }
    }

    /// Checks that the imported table is bit-identical to the values that the text was printed from.
    fn check(&self, dest: &Path) -> Result<()> {
        let table = Table::open(dest)?;
        table.verify()?;
        let found = checksum(table.rows(0..table.n_rows())?, table.labels()?);
        ensure!(found == self.checksum, "the table of `{}` has other values than its text: there is nothing to time", self.name);
        ensure!(self.unpack()? == self.n_bytes, "`{}` unpacks to another length", self.name);
        Ok(())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // The whole folder is removed later.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn measure(text: &Text, n_rounds: usize, peers: &mut Option<Peer>, folder: &Path) -> Result<Vec<Row>> {
    let dest = folder.join("imported.safetensors");
    let import = || -> Result<()> {
        import(&text.path, &dest, &CsvOptions::default())?;
        Ok(())
    };
    import()?;
    text.check(&dest)?;

    let (mut ours, mut unpacking, mut theirs) = (Vec::new(), Vec::new(), vec![Vec::new(); PEERS.len()]);
    for round in 0..=n_rounds {
        let figure = rate(text, import)?;
        let unpacked = rate(text, || text.unpack().map(|_| ()))?;
        if round > 0 {
            ours.push(figure);
            unpacking.push(unpacked);
        }
        if let Some(peers) = peers {
            for (name, figures) in PEERS.iter().zip(&mut theirs) {
                let answer = peers.ask(&format!("{name} {}", text.path.display()))?;
                let &[seconds, n_rows, sum] = &answer[..] else { anyhow::bail!("{name} answered {answer:?}") };
                let is_same = n_rows == text.n_rows as f64 && (sum - text.sum).abs() <= 1e-3 * text.n_rows as f64;
                ensure!(is_same, "{name} read {n_rows} rows that sum to {sum} of `{}`, expected {}", text.name, text.sum);
                if round > 0 {
                    figures.push(text.n_bytes as f64 / seconds);
                }
            }
        }
    }
    std::fs::remove_file(&dest)?;

    let line = |reference: &str, figures, target| Row {
        suite: "loader",
        case: format!("CSV import, {}", text.name),
        ours: ours.clone(),
        unit: "B/s",
        reference: Some((reference.to_owned(), figures)),
        target,
        better: Better::More,
    };
    let mut rows = Vec::new();
    match text.packing {
        Packing::None => rows.push(line("limit:reading alone", unpacking, None)),
        Packing::Gzip => rows.push(line("limit:inflate alone", unpacking, Some(0.9))),
    }
    if peers.is_some() {
        let fastest = (0..n_rounds).map(|round| theirs.iter().map(|figures| figures[round]).fold(0.0, f64::max)).collect();
        let target = (text.packing == Packing::None).then_some(2.0);
        rows.push(line("the fastest of pandas, pyarrow, polars", fastest, target));
        rows.extend(PEERS.into_iter().zip(theirs).map(|(name, figures)| line(name, figures, None)));
    }
    Ok(rows)
}

/// Bytes of text per second.
fn rate(text: &Text, run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    run()?;
    Ok(text.n_bytes as f64 / started.elapsed().as_secs_f64())
}

/// As `numpy.savetxt` prints it, and in the published HIGGS file: `8.692932128906250000e-01`.
fn write_scientific(text: &mut String, x: f32) -> std::fmt::Result {
    let plain = format!("{:.18e}", f64::from(x));
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    write!(text, ",{mantissa}e{sign}{digits:0>2}")
}
