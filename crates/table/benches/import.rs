//! The speed of importing text and of reading tables: `cargo bench -p brisk-table`.
//!
//! Options, after `--`: `--mb N` for about `N` megabytes of text (default 256), `--smoke` for a tiny run, `--file CSV` for your
//! own file. The page cache is warm. Each figure is the median of five, after a check that the result is correct. Peers run if
//! `BRISK_PYTHON` names a Python in which they are installed.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use brisk_table::{CsvOptions, Table, import};

const N_COLS: usize = 28;
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|i| args.get(i + 1));
    let n_bytes = match value("--mb") {
        _ if args.iter().any(|arg| arg == "--smoke") => 1 << 20,
        Some(mb) => mb.parse::<usize>()? << 20,
        None => 256 << 20,
    };
    let folder = tempfile::Builder::new().prefix("brisk-table-bench").tempdir()?;
    println!("{} threads, warm page cache, median of {RUNS}", std::thread::available_parallelism()?);

    let sources = match value("--file") {
        Some(path) => vec![("file", PathBuf::from(path))],
        None => vec![
            ("shortest", generate(folder.path(), "shortest", n_bytes, |text, x| write!(text, ",{x}"))?),
            ("%.18e", generate(folder.path(), "scientific", n_bytes, write_scientific)?),
        ],
    };
    for (name, source) in &sources {
        bench_import(name, source, folder.path())?;
    }
    if value("--file").is_none() {
        let packed = pack(&sources[0].1)?;
        bench_import("shortest.gz", &packed, folder.path())?;
    }
    bench_rows(&folder.path().join("table.safetensors"))
}

fn bench_import(name: &str, source: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let dest = folder.join("table.safetensors");
    let text_bytes = unpacked_bytes(source)?;
    let report = import(source, &dest, &CsvOptions::default())?;
    check(source, &dest)?;

    let reading = median(|| unpacked_bytes(source).map(|_| ()))?;
    let line = |what: &str, seconds: f64| {
        let gb_per_s = text_bytes as f64 / 1e9 / seconds;
        let rows_per_s = report.n_rows as f64 / 1e6 / seconds;
        println!("{name:12} {what:24} {:7.0} ms  {gb_per_s:6.3} GB/s of text  {rows_per_s:6.2} M rows/s", seconds * 1e3);
    };
    line("only read (and unpack)", reading);
    line("import", median(|| Ok(import(source, &dest, &CsvOptions::default()).map(|_| ())?))?);
    let one = CsvOptions { n_threads: 1, ..CsvOptions::default() };
    line("import, 1 parser", median(|| Ok(import(source, &dest, &one).map(|_| ())?))?);
    if let Ok(python) = std::env::var("BRISK_PYTHON") {
        for (peer, code) in PEERS {
            let script = format!(
                "import sys,time\n{code}\nread(sys.argv[1])\nts=[]\nfor _ in range({RUNS}):\n t=time.perf_counter(); read(sys.argv[1]); ts.append(time.perf_counter()-t)\nprint(sorted(ts)[{RUNS}//2])"
            );
            let output = Command::new(&python).args(["-c", &script]).arg(source).output()?;
            match String::from_utf8(output.stdout)?.trim().parse::<f64>() {
                Ok(seconds) => line(peer, seconds),
                Err(_) => println!("{name:12} {peer:24} not run: that Python has no such module"),
            }
        }
    }
    Ok(())
}

/// Reading to `f32` columns in memory, which is less work than writing a table to disk.
const PEERS: [(&str, &str); 3] = [
    ("pandas (C engine)", "import pandas, numpy\nread=lambda p: pandas.read_csv(p, dtype=numpy.float32, engine='c')"),
    (
        "pyarrow",
        "import pyarrow, pyarrow.csv as c\ndef read(p):\n n=open(p,'rb') if not p.endswith('gz') else __import__('gzip').open(p); h=n.readline().decode().strip().split(',')\n return c.read_csv(p, convert_options=c.ConvertOptions(column_types={k: pyarrow.float32() for k in h}))",
    ),
    ("polars", "import polars\nread=lambda p: polars.read_csv(p, schema_overrides=[polars.Float32]*29)"),
];

/// Checks every value of the first and last rows against `str::parse`.
fn check(source: &Path, dest: &Path) -> Result<(), Box<dyn Error>> {
    let table = Table::open(dest)?;
    table.verify()?;
    if source.extension().is_some_and(|extension| extension == "gz") {
        return Ok(());
    }
    let text = fs::read_to_string(source)?;
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), table.n_rows(), "rows were lost");
    let sample = (0..lines.len()).filter(|row| row % 97 == 0 || row + 1000 > lines.len());
    for row in sample {
        let expected: Vec<u32> = lines[row].split(',').map(|cell| cell.parse().map(f32::to_bits)).collect::<Result<_, _>>()?;
        let found = table.rows::<f32>(row..row + 1)?.iter().map(|x| x.to_bits());
        assert!(found.eq(expected[1..].iter().copied()), "row {row} differs from str::parse");
        assert_eq!(table.labels::<f32>()?[row].to_bits(), expected[0], "the label of row {row} differs");
    }
    Ok(())
}

/// Copies rows in order, a batch at a time, into one buffer, compared with a memcpy of the same number of bytes.
fn bench_rows(path: &Path) -> Result<(), Box<dyn Error>> {
    // SAFETY: nothing else writes to this folder.
    #[expect(unsafe_code, reason = "the map is what is measured")]
    let table = unsafe { Table::open_mapped(path) }?;
    const BATCH: usize = 1024;
    let n_batches = table.n_rows() / BATCH;
    let mut batch = vec![0.0_f32; BATCH * N_COLS];
    let copied = vec![1.0_f32; n_batches * BATCH * N_COLS];
    let bytes = (n_batches * BATCH * N_COLS * 4) as f64;
    let memcpy = median(|| {
        for from in copied.chunks_exact(BATCH * N_COLS) {
            batch.copy_from_slice(from);
            black_box(&batch);
        }
        Ok(())
    })?;
    let rows = median(|| {
        for i in 0..n_batches {
            batch.copy_from_slice(table.rows::<f32>(i * BATCH..(i + 1) * BATCH)?);
            black_box(&batch);
        }
        Ok(())
    })?;
    let line = |what: &str, seconds: f64| {
        let rows_per_s = (n_batches * BATCH) as f64 / 1e6 / seconds;
        println!("{what:37} {:7.1} ms  {:6.2} GB/s          {rows_per_s:6.1} M rows/s", seconds * 1e3, bytes / 1e9 / seconds);
    };
    line("memcpy of as many bytes", memcpy);
    line("rows(a..b) of a map, copied", rows);
    println!("rows / memcpy = {:.2}", memcpy / rows);
    // SAFETY: as above.
    #[expect(unsafe_code, reason = "the map is what is measured")]
    let opening = median(|| Ok(unsafe { Table::open_mapped(path) }.map(|_| ())?))?;
    println!("open_mapped: {:.0} µs", opening * 1e6);
    Ok(())
}

fn median(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// Rows like those of HIGGS: a label, then 28 numbers about 1 in size.
fn generate(
    folder: &Path,
    name: &str,
    n_bytes: usize,
    write_value: impl Fn(&mut String, f32) -> std::fmt::Result,
) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join(format!("{name}.csv"));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let mut text = String::from("label");
    for col in 0..N_COLS {
        write!(text, ",x{col}")?;
    }
    let (mut written, mut state) = (0, 1_u64);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    while written < n_bytes {
        text.push('\n');
        text.push(if random() < 0.5 { '0' } else { '1' });
        for col in 0..N_COLS {
            // Similar to HIGGS: a third of the columns have both signs, the others are positive.
            let x = random() + random() + random();
            let x = match col % 3 {
                0 => x - 1.5,
                _ => x * 0.7,
            };
            write_value(&mut text, x)?;
        }
        file.write_all(text.as_bytes())?;
        written += text.len();
        text.clear();
    }
    file.write_all(b"\n")?;
    file.into_inner()?;
    Ok(path)
}

/// The format of `numpy.savetxt`, in which HIGGS is published: `8.692932128906250000e-01`.
fn write_scientific(text: &mut String, x: f32) -> std::fmt::Result {
    let plain = format!("{:.18e}", f64::from(x));
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(text, ",{mantissa}e{sign}{:02}", exponent.abs())
}

fn pack(source: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let path = source.with_extension("csv.gz");
    let mut encoder = flate2::write::GzEncoder::new(File::create(&path)?, flate2::Compression::new(6));
    std::io::copy(&mut File::open(source)?, &mut encoder)?;
    encoder.finish()?;
    Ok(path)
}

/// Reads the file as an importer would, and counts the bytes of its text.
fn unpacked_bytes(source: &Path) -> Result<usize, Box<dyn Error>> {
    let file = File::open(source)?;
    let mut input: Box<dyn Read> = if source.extension().is_some_and(|extension| extension == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let (mut n, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok(n),
            read => n += read,
        }
    }
}
