//! Event files for TensorBoard: scalars, histograms and images by step.

mod crc32c;
mod histogram;
mod message;
mod record;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::encoded_image::encoded;
use crate::error::Error;
use crate::metric_label::divided;
use message::{Event, Image, SessionLog, Summary, Value};

/// Writes an event file for TensorBoard, like PyTorch's `SummaryWriter`.
///
/// Each value is one write to the file, so TensorBoard shows it a moment later, and a process that is killed loses at most the
/// value that it was writing. `tensorboard --logdir FOLDER` shows the runs of all folders below `FOLDER`; a tag such as
/// `loss/train` puts charts into groups.
///
/// # Examples
/// ```
/// use brisk_report::EventWriter;
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let mut events = EventWriter::create(folder)?;
/// for step in 0..10 {
///     events.scalar("loss/train", step, 1.0 / (step + 1) as f64)?;
/// }
/// events.histogram("gradients", 10, &[-0.25, 0.0, 0.5])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// # Reference
/// `tensorflow/core/util/event.proto` and `record_writer.cc`.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

impl EventWriter {
    /// Creates a new event file in `folder`, which is created too if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|cause| Error::Io { path: folder.to_owned(), action: "create the folder", cause })?;
        let (path, file) = new_file(folder)?;
        let mut writer = Self { path, file };
        writer.write(Event { file_version: Some("brain.Event:2".to_owned()), ..Event::default() })?;
        Ok(writer)
    }

    /// Creates a new event file in the folder of a run that resumes at `step`. TensorBoard then discards the values of this step
    /// and later ones in earlier files of the folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resume(folder: impl AsRef<Path>, step: u64) -> Result<Self, Error> {
        let mut writer = Self::create(folder)?;
        let session_log = Some(SessionLog { status: SessionLog::START });
        writer.write(Event { step: step as i64, session_log, ..Event::default() })?;
        Ok(writer)
    }

    /// The event file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a number, which is stored as `f32`. NaN and infinities are shown as such.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn scalar(&mut self, tag: &str, step: u64, value: f64) -> Result<(), Error> {
        self.add(step, Value { tag: tag.to_owned(), simple_value: Some(value as f32), ..Value::default() })
    }

    /// Adds a metric by its name in a log: that of training rows and of validation rows are in one group, `loss/train` and
    /// `loss/valid` for `train_loss` and `valid_loss`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn metric(&mut self, name: &str, step: u64, value: f64) -> Result<(), Error> {
        match divided(name) {
            (Some(set), metric) => self.scalar(&format!("{metric}/{}", set.name), step, value),
            (None, metric) => self.scalar(metric, step, value),
        }
    }

    /// Adds the distribution of the finite ones of `values`, in TensorFlow's buckets, whose limits grow by 10 %.
    ///
    /// # Errors
    /// [`Error::NoFiniteValue`], [`Error::Io`].
    pub fn histogram(&mut self, tag: &str, step: u64, values: &[f32]) -> Result<(), Error> {
        let histogram =
            histogram::of(values).ok_or_else(|| Error::NoFiniteValue { tag: tag.to_owned(), n_values: values.len() })?;
        self.add(step, Value { tag: tag.to_owned(), histo: Some(histogram), ..Value::default() })
    }

    /// Adds an image of `pixels`, `[height, width, n_channels]`: grey, grey with alpha, RGB or RGBA for 1 to 4 channels.
    ///
    /// # Errors
    /// [`Error::ImagePixels`], [`Error::Io`].
    pub fn image(&mut self, tag: &str, step: u64, [height, width]: [usize; 2], pixels: &[u8]) -> Result<(), Error> {
        let refused = || Error::ImagePixels { tag: tag.to_owned(), height, width, found: pixels.len() };
        let (encoded_image_string, n_channels) = encoded([height, width], pixels).ok_or_else(refused)?;
        let [height, width, colorspace] = [height, width, n_channels].map(|n| n as i32);
        let image = Image { height, width, colorspace, encoded_image_string };
        self.add(step, Value { tag: tag.to_owned(), image: Some(image), ..Value::default() })
    }

    fn add(&mut self, step: u64, value: Value) -> Result<(), Error> {
        let summary = Some(Summary { value: vec![value] });
        self.write(Event { step: step as i64, summary, ..Event::default() })
    }

    /// Writes a record with one write, so that all records are whole for readers and after a kill, except possibly the last.
    fn write(&mut self, event: Event) -> Result<(), Error> {
        // Seconds since 1970; 0 if the clock is before that.
        let wall_time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let written = self.file.write_all(&record::framed(&Event { wall_time, ..event }));
        written.map_err(|cause| Error::Io { path: self.path.clone(), action: "write an event to the file", cause })
    }
}

/// Creates a file that did not exist before. TensorBoard recognises the name, and reads the files of a folder in the order of
/// their names.
fn new_file(folder: &Path) -> Result<(PathBuf, File), Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanoseconds) = (now.as_secs(), now.subsec_nanos());
    let mut attempt = 0;
    loop {
        let path =
            folder.join(format!("events.out.tfevents.{seconds:010}.{nanoseconds:09}.brisk.{}.{attempt:03}", process::id()));
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => attempt += 1,
            Err(cause) => return Err(Error::Io { path, action: "create the event file", cause }),
        }
    }
}
