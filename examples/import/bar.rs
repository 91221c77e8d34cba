use std::fmt::Write;
use std::io::{IsTerminal, stderr};

use brisk_report::{rows_per_second, seconds};
use brisk_table::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// The progress of an import, on standard error if that is a terminal; otherwise nothing is shown.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(crate) fn stderr() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target).with_style(style()) }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        self.bar.set_length(progress.total_bytes);
        self.bar.set_position(progress.bytes_read);
        let elapsed = self.bar.elapsed().as_secs_f64();
        self.bar.set_message(format!("{} rows/s", rows_per_second(progress.n_rows as f64 / elapsed)));
    }
}

/// Removes the bar, so that it does not precede the lines that follow.
impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("[{wide_bar}] {binary_bytes}/{binary_total_bytes}, {msg}, {left} left")
        .expect("the template is well-formed")
        .with_key("left", |state: &ProgressState, out: &mut dyn Write| {
            // Until the speed is known, the estimate is zero.
            let left = if state.per_sec() > 0.0 { state.eta().as_secs_f64() } else { f64::NAN };
            let _ = out.write_str(&seconds(left));
        })
        .progress_chars("=> ")
}
