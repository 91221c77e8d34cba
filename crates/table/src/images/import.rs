use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ImagesOptions;
use super::decode::{Decoded, decode};
use super::folder::{Listing, UNPACK, read_file};
use super::opened::{MAX_SIDE, NoImage};
use super::options::{Channels, Orientation};
use super::pixels::{Pixels, Shape};
use crate::destination::Progress;
use crate::dtype::DType;
use crate::error::{Error, SourceError};
use crate::format::{RecordedSettings, TableMetadata};
use crate::import::{
    BadRows, Dest, ImportReport, ImportWarning, ImportWriter, Input, Like, MAX_REPORTS, Member, Names, NobodyWaits, Origin,
    ReadSource, for_each_member, guarded, in_order, n_threads, similar,
};
use crate::parts::open_file;
use crate::remedy::Remedy;
use crate::schema::{Schema, Weights};
use crate::source_identity::{SourceIdentity, file_name};
use crate::writer::Parts;

/// Bytes of pixels that are written at a time. Fixed, so that the statistics are the same on any machine.
const CHUNK_BYTES: usize = 1 << 20;

impl ReadSource for ImagesOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        self.origin_of(if path.is_dir() { Listing::of_folder(path, None)?.identity } else { SourceIdentity::of(path)? })
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        check_size(self.size).map_err(|reason| reason.at(path))?;
        let like = self.like.as_deref().map(Like::read).transpose()?;
        let options = match &like {
            Some(like) => &matched(self, like)?,
            None => self,
        };
        let is_folder = path.is_dir();
        let listing = if is_folder {
            Listing::of_folder(path, like.as_ref())?
        } else {
            Listing::of_archive(path, options.archive_end, like.as_ref())?
        };
        dest.check_differs(listing.files.iter().map(PathBuf::as_path))?;
        let n_read = Arc::new(AtomicU64::new(0));
        let decode_all = |options: &ImagesOptions, expected, take: &mut dyn FnMut(Outcome) -> Result<(), Option<Error>>| {
            let feed = |put: &mut dyn FnMut(Job) -> Result<(), NobodyWaits>| match is_folder {
                true => feed_folder(path, &listing, put),
                false => feed_archive(path, &listing, options, &n_read, put),
            };
            let work = |job: Job, outlet: &crate::import::Outlet<Outcome>| {
                // An error means that the import has ended.
                _ = outlet.put(decode_job(job, path, options, expected, is_folder.then_some(&*n_read)));
            };
            in_order(feed, n_threads(options.n_threads), 1, work, take)
        };

        // The first image determines the shape of all others.
        let mut first: Option<(String, Shape)> = None;
        let one_thread = ImagesOptions { n_threads: 1, ..options.clone() };
        let found = decode_all(&one_thread, None, &mut |outcome| match outcome.result {
            Ok((_, Decoded::Image(image))) => {
                first = Some((outcome.name, image.shape));
                Err(None)
            }
            Ok((_, Decoded::OtherShape(_))) => unreachable!("no shape was expected"),
            Err(bad) if options.bad_files != BadRows::Skip => Err(Some(bad)),
            Err(_) => Ok(()),
        });
        if let Err(Some(error)) = found {
            return Err(error);
        }
        let Some((first_name, shape)) = first else {
            return Err(SourceError::NoRows { found: "no PNG or JPEG file in a folder of its class" }.at(path));
        };
        let of_table = like.as_ref().map(|like| &like.row_shape[..]);
        if let Some(&[height, width, n_channels]) = of_table
            && (shape.height, shape.width, shape.n_channels) != (height, width, n_channels)
        {
            let of_table = Shape { height, width, n_channels };
            return Err(unequal(path, ("the table to match", of_table), (&first_name, shape)));
        }
        n_read.store(0, Ordering::Relaxed);

        let total_bytes = listing.identity.n_bytes;
        let origin = self.origin_of(listing.identity.clone())?;
        let schema = Schema {
            dtype: DType::U8,
            label_dtype: DType::U32,
            source: Some(origin.source),
            ..Schema::shaped(&[shape.height, shape.width, shape.n_channels])
        };
        let photos_as_stored = options.orientation == Orientation::AsStored;
        let settings = RecordedSettings { photos_as_stored, ..RecordedSettings::default() };
        let metadata = TableMetadata {
            import: Some(origin.options),
            classes: listing.classes.clone(),
            settings,
            ..TableMetadata::default()
        };
        let mut writer = ImportWriter::create(dest, schema, metadata, Names::Known)?;
        let row_bytes = shape.height * shape.width * shape.n_channels;
        let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
        let (mut pixels, mut labels) = (Vec::with_capacity(chunk_rows * row_bytes), Vec::with_capacity(chunk_rows));
        let (mut n_skipped, mut first_skipped, mut files) = (0, Vec::new(), Vec::new());
        let mut write = |pixels: &mut Vec<u8>, labels: &mut Vec<u32>| {
            let parts = Parts { features: pixels, labels: bytemuck::cast_slice(labels), categories: &[], weights: &[] };
            writer.push(parts, None)?;
            pixels.clear();
            labels.clear();
            let bytes_read = n_read.load(Ordering::Relaxed);
            progress(Progress { bytes_read, total_bytes, n_rows: writer.n_rows() });
            Ok(())
        };
        let written = decode_all(options, Some(shape), &mut |outcome| match outcome.result {
            Ok((label, Decoded::Image(image))) => {
                pixels.extend_from_slice(&image.values);
                labels.push(label);
                files.push(outcome.name);
                if labels.len() == chunk_rows { write(&mut pixels, &mut labels).map_err(Some) } else { Ok(()) }
            }
            Ok((_, Decoded::OtherShape(other))) => Err(Some(unequal(path, (&first_name, shape), (&outcome.name, other)))),
            // What cannot be opened is one bad file, what cannot be read may be the disk.
            Err(bad) if options.bad_files == BadRows::Skip && !matches!(bad, Error::Io { action: "read" | UNPACK, .. }) => {
                n_skipped += 1;
                if first_skipped.len() < MAX_REPORTS {
                    first_skipped.push(bad);
                }
                Ok(())
            }
            Err(bad) => Err(Some(bad)),
        });
        written.map_err(|error: Option<Error>| error.expect("this pass ends early only with an error"))?;
        write(&mut pixels, &mut labels)?;
        let similar = similar(&listing.classes).map(|classes| ImportWarning::SimilarClasses { classes });
        let empty = listing.empty_classes.into_iter().map(|class| ImportWarning::EmptyClass { class });
        let warnings = similar.into_iter().chain(empty).collect();
        let report = ImportReport::finish(writer, listing.classes)?;
        Ok(ImportReport { files, n_skipped, first_skipped, warnings, ..report })
    }

    fn like(&self) -> Option<&Path> {
        self.like.as_deref()
    }
}

impl ImagesOptions {
    fn origin_of(&self, source: SourceIdentity) -> Result<Origin, Error> {
        Origin::new(source, &Self { n_threads: 0, ..self.clone() }, self.like())
    }
}

/// A decoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedImage {
    /// Height, width and channels.
    pub shape: [usize; 3],
    /// The pixels in this order.
    pub values: Vec<u8>,
}

impl ImagesOptions {
    /// Decodes the PNG or JPEG file at `path` as an import with these options does.
    ///
    /// # Errors
    /// [`Error::Source`] if it is no such image, or is damaged; [`Error::NotAFile`], [`Error::Io`].
    ///
    /// # Examples
    /// ```no_run
    /// use brisk_table::{Channels, ImagesOptions};
    ///
    /// let options = ImagesOptions { channels: Channels::Rgb, size: Some([64, 64]), ..ImagesOptions::default() };
    /// assert_eq!(options.decode("photo.jpg")?.shape, [64, 64, 3]);
    /// # Ok::<(), brisk_table::Error>(())
    /// ```
    pub fn decode(&self, path: impl AsRef<Path>) -> Result<DecodedImage, Error> {
        let path = path.as_ref();
        check_size(self.size).map_err(|reason| reason.at(path))?;
        // In no folder of a class, but the caller does not ask for a class.
        let name = file_name(path);
        let job = Job { name, label: Some(0), bytes: Bytes::At(path.to_owned()) };
        match decode_job(job, path, self, None, None).result {
            Ok((_, Decoded::Image(Pixels { shape, values }))) => {
                Ok(DecodedImage { shape: [shape.height, shape.width, shape.n_channels], values })
            }
            Ok((_, Decoded::OtherShape(_))) => unreachable!("no shape was expected"),
            Err(bad) => Err(bad),
        }
    }
}

/// A file to be decoded.
struct Job {
    name: String,
    label: Option<u32>,
    bytes: Bytes,
}

enum Bytes {
    At(PathBuf),
    /// The bytes of a member, or why the archive could not be read.
    Here(Result<Vec<u8>, Error>),
}

struct Outcome {
    name: String,
    result: Result<(u32, Decoded), Error>,
}

/// The options, with size, channels and orientation of the table to match.
fn matched(options: &ImagesOptions, like: &Like) -> Result<ImagesOptions, Error> {
    let &[height, width, n_channels] = &like.row_shape[..] else {
        return Err(
            like.wrong(&format!("its rows are {:?}, those of images have a height, a width and channels", like.row_shape))
        );
    };
    if like.metadata.classes.is_empty() {
        return Err(like.wrong("it does not name its classes, which are the folders of images"));
    }
    let of_table = match n_channels {
        1 => Channels::Grey,
        3 => Channels::Rgb,
        4 => Channels::Rgba,
        _ => Channels::AsStored,
    };
    if options.size.is_some_and(|size| size != [height, width])
        || options.channels != Channels::AsStored && options.channels != of_table
    {
        return Err(
            like.wrong(&format!("its images are {height} × {width} pixels of {n_channels} channels, others were asked for"))
        );
    }
    if options.orientation != Orientation::default() {
        options.check_orientation(like)?;
    }
    like.check_unnamed(Weights::Absent)?;
    let (size, orientation) = (Some([height, width]), Orientation::of_table(like));
    Ok(ImagesOptions { size, channels: of_table, orientation, ..options.clone() })
}

fn feed_folder(folder: &Path, listing: &Listing, put: &mut dyn FnMut(Job) -> Result<(), NobodyWaits>) {
    for file in &listing.files {
        let below = file.strip_prefix(folder).unwrap_or(file);
        let Some(label) = listing.label(below) else { continue };
        if put(Job { name: below.display().to_string(), label, bytes: Bytes::At(file.clone()) }).is_err() {
            break;
        }
    }
}

fn feed_archive(
    path: &Path,
    listing: &Listing,
    options: &ImagesOptions,
    n_read: &AtomicU64,
    put: &mut dyn FnMut(Job) -> Result<(), NobodyWaits>,
) {
    let fed = match Input::open(path) {
        Ok(input) => for_each_member(input.bytes, options.archive_end, |name, member| {
            let (Member::File(from), Some(label)) = (member, listing.label(Path::new(&name))) else { return Ok(true) };
            let bytes = Bytes::Here(Ok(read_file(from)?));
            n_read.store(input.n_read.load(Ordering::Relaxed), Ordering::Relaxed);
            Ok(put(Job { name, label, bytes }).is_ok())
        }),
        // The archive could be opened when it was listed.
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(cause) = fed {
        let failed = Error::Io { path: path.to_owned(), action: UNPACK, cause };
        // An error means that the import has already ended for another reason.
        _ = put(Job { name: String::new(), label: None, bytes: Bytes::Here(Err(failed)) });
    }
}

/// A size of which no side is 0 or longer than [`MAX_SIDE`].
fn check_size(size: Option<[usize; 2]>) -> Result<(), SourceError> {
    match size {
        Some([height, width]) if [height, width].iter().any(|side| !(1..=MAX_SIDE as usize).contains(side)) => {
            Err(SourceError::unexpected(
                "`ImagesOptions::size`",
                format!("{height} × {width} pixels"),
                format!("sides from 1 to {MAX_SIDE}"),
                &[],
            ))
        }
        _ => Ok(()),
    }
}

/// Decodes a file of the source at `path`.
fn decode_job(job: Job, path: &Path, options: &ImagesOptions, expected: Option<Shape>, n_read: Option<&AtomicU64>) -> Outcome {
    let Job { name, label, bytes } = job;
    let bytes = match bytes {
        Bytes::Here(bytes) => bytes,
        Bytes::At(file) => open_file(&file).and_then(|bytes| read_file(bytes).map_err(Error::io(&file, "read"))),
    };
    let result = bytes.and_then(|bytes| {
        if let Some(n_read) = n_read {
            n_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        let part = format!("`{name}`");
        let decoded = guarded(&part, || decode(&bytes, options, expected));
        let decoded = decoded.and_then(|decoded| decoded.map_err(|reason| bad_file(&name, reason)));
        let no_class = || {
            let expected = "images in folders named after their classes";
            SourceError::unexpected(part.as_str(), "an image in no folder", expected, &[Remedy::MoveToClass, Remedy::SkipRows])
        };
        decoded.and_then(|decoded| Ok((label.ok_or_else(no_class)?, decoded))).map_err(|reason| reason.at(path))
    });
    Outcome { name, result }
}

fn bad_file(name: &str, reason: NoImage) -> SourceError {
    let part = format!("`{name}`");
    let (found, expected, remedies): (_, _, &'static [Remedy]) = match reason {
        NoImage::OtherFormat => {
            let found = "other first bytes than a PNG or JPEG has".to_owned();
            (found, "only images", &[Remedy::RemoveFile, Remedy::SkipRows])
        }
        NoImage::Damaged(found) => (found, "a complete image", &[Remedy::Correct, Remedy::SkipRows]),
        NoImage::TooLarge => {
            let found = format!("a side of more than {MAX_SIDE} pixels");
            (found, "smaller images", &[Remedy::Correct, Remedy::SkipRows])
        }
        NoImage::TooDeep(samples) => {
            (samples.to_string(), "8 bits per channel, to be stored as it is", &[Remedy::ConvertChannels, Remedy::SkipRows])
        }
    };
    SourceError::unexpected(part, found, expected.to_owned(), remedies)
}

fn unequal(path: &Path, first: (&str, Shape), other: (&str, Shape)) -> Error {
    let same_size = (first.1.height, first.1.width) == (other.1.height, other.1.width);
    let remedies: &'static [Remedy] = if same_size { &[Remedy::ConvertChannels] } else { &[Remedy::ScaleImages] };
    let expected = format!("{}, as `{}` has", first.1, first.0);
    SourceError::unexpected(format!("`{}`", other.0), other.1.to_string(), expected, remedies).at(path)
}
