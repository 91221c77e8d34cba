use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use brisk_report::{rows_per_second, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Shows the progress of a run on standard error: a bar with epoch, rows per second, time left and the last metrics on a
/// terminal, and one line per epoch elsewhere. This is the only part of the crate that prints.
///
/// # Examples
/// ```
/// use brisk_train::Progress;
///
/// let mut progress = Progress::lines(2, 1000, std::io::sink()); // `Progress::stderr(2, 1000)`, as a rule
/// for epoch in 0..2 {
///     progress.epoch_started(epoch);
///     for _ in 0..10 {
///         progress.advance(100);
///     }
///     progress.epoch_finished(&[("loss", 0.6931), ("auc", 0.75)]);
/// }
/// progress.finished();
/// ```
pub struct Progress {
    n_epochs: usize,
    rows_per_epoch: u64,
    /// The epoch that is running, counted from 0, with its rows so far.
    epoch: usize,
    n_rows: u64,
    started: Instant,
    shown: Shown,
}

enum Shown {
    Nothing,
    Lines(Box<dyn Write + Send>),
    Bar { bar: ProgressBar, has_started: bool },
}

impl Default for Progress {
    /// [`Progress::quiet`].
    fn default() -> Self {
        Self::quiet()
    }
}

impl Progress {
    /// A bar if standard error is a terminal, else one line per epoch.
    pub fn stderr(n_epochs: usize, rows_per_epoch: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self::lines(n_epochs, rows_per_epoch, io::stderr());
        }
        let n_rows = rows_per_epoch.saturating_mul(n_epochs as u64);
        let bar = ProgressBar::with_draw_target(Some(n_rows), ProgressDrawTarget::stderr()).with_style(style());
        Self::new(n_epochs, rows_per_epoch, Shown::Bar { bar, has_started: false })
    }

    /// One line per epoch, to `writer`. Write errors are ignored: a run does not end because its output is closed.
    pub fn lines(n_epochs: usize, rows_per_epoch: u64, writer: impl Write + Send + 'static) -> Self {
        Self::new(n_epochs, rows_per_epoch, Shown::Lines(Box::new(writer)))
    }

    /// Shows nothing.
    pub fn quiet() -> Self {
        Self::new(0, 0, Shown::Nothing)
    }

    fn new(n_epochs: usize, rows_per_epoch: u64, shown: Shown) -> Self {
        Self { n_epochs, rows_per_epoch, epoch: 0, n_rows: 0, started: Instant::now(), shown }
    }

    /// An epoch begins; the first is 0. A run that is resumed begins with a later one.
    pub fn epoch_started(&mut self, epoch: usize) {
        (self.epoch, self.n_rows, self.started) = (epoch, 0, Instant::now());
        let name = self.epoch_name();
        if let Shown::Bar { bar, has_started } = &mut self.shown {
            bar.set_prefix(name);
            bar.set_position(self.rows_per_epoch.saturating_mul(epoch as u64));
            if !*has_started {
                // The epochs of an earlier process say nothing about the speed of this process.
                bar.reset_eta();
                *has_started = true;
            }
        }
    }

    /// `n_rows` more rows of the epoch are done.
    pub fn advance(&mut self, n_rows: u64) {
        self.n_rows += n_rows;
        if let Shown::Bar { bar, .. } = &self.shown {
            bar.inc(n_rows);
        }
    }

    /// The epoch has ended, with these metrics.
    pub fn epoch_finished(&mut self, metrics: &[(&str, f64)]) {
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = rows_per_second(self.n_rows as f64 / elapsed);
        self.measured("", metrics, &format!("  {rate} rows/s with validation  {}", seconds(elapsed)));
    }

    /// The model has been validated within the epoch, after the batch `batch` of `n_batches`, from 1, with these metrics.
    pub fn validated(&mut self, batch: usize, n_batches: usize, metrics: &[(&str, f64)]) {
        self.measured(&format!(", batch {batch}/{n_batches}"), metrics, "");
    }

    /// A line of metrics of the epoch, which the bar then has.
    fn measured(&mut self, at: &str, metrics: &[(&str, f64)], rest: &str) {
        let metrics = metrics.iter().map(|(name, value)| format!("  {name} {}", Short(*value))).collect::<String>();
        self.note(&format!("{}{at}{metrics}{rest}", self.epoch_name()));
        if let Shown::Bar { bar, .. } = &self.shown {
            bar.set_message(metrics);
        }
    }

    /// A line of text, above the bar if there is one.
    pub fn note(&mut self, text: &str) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines(writer) => {
                let _ = writeln!(writer, "{text}").and_then(|()| writer.flush());
            }
            Shown::Bar { bar, .. } => bar.println(text),
        }
    }

    /// The run has ended: the bar is removed, the lines stay.
    pub fn finished(&mut self) {
        if let Shown::Bar { bar, .. } = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn epoch_name(&self) -> String {
        format!("epoch {}/{}", self.epoch + 1, self.n_epochs)
    }
}

/// Also removes the bar of a run that fails, so that only the error is shown.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finished();
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_epochs, rows_per_epoch, epoch, n_rows, .. } = self;
        let shown = match self.shown {
            Shown::Nothing => "nothing",
            Shown::Lines(_) => "lines",
            Shown::Bar { .. } => "a bar",
        };
        write!(f, "Progress {{ {shown}, epoch {epoch} of {n_epochs}, row {n_rows} of {rows_per_epoch} }}")
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix} [{wide_bar}] {rows_per_s} rows/s, {left} left{msg}")
        .expect("the template is well-formed")
        .with_key("rows_per_s", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&rows_per_second(state.per_sec()));
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // Until the speed is known, the estimate is zero.
            let left = if state.per_sec() > 0.0 { state.eta().as_secs_f64() } else { f64::NAN };
            let _ = out.write_str(&seconds(left));
        })
        .progress_chars("=> ")
}

/// A metric for people: with four decimals, or with an exponent if four decimals would show little.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let has_exponent = value.is_finite() && value != 0.0 && !(1e-3..1e6).contains(&value.abs());
        match value {
            value if value.fract() == 0.0 && value.abs() < 1e6 => write!(f, "{value}"),
            value if has_exponent => write!(f, "{value:.3e}"),
            value => write!(f, "{value:.4}"),
        }
    }
}
