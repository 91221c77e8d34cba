use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file beside `path` that becomes `path`, or goes away.
#[derive(Debug)]
pub(crate) struct TempFile {
    path: PathBuf,
    temp_path: PathBuf,
    /// `None` once published.
    file: Option<File>,
}

impl TempFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let temp_path = temp_path(path)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temp_path)?;
        Ok(Self { path: path.to_owned(), temp_path, file: Some(file) })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("the file is open until it is published, which takes `self`")
    }

    pub(crate) fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file();
        if file.stream_position()? != offset {
            file.seek(SeekFrom::Start(offset))?;
        }
        file.write_all(bytes)
    }

    pub(crate) fn read_exact_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.file();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    /// What the file is to become.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable under its own name: its bytes first, then the name.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        self.file().sync_all()?;
        // Closed before it is renamed, as Windows wants it.
        self.file = None;
        if let Err(error) = fs::rename(&self.temp_path, &self.path) {
            self.remove();
            return Err(error);
        }
        sync_folder(&self.path)
    }

    fn remove(&self) {
        // There is nobody to tell: the error that led here is the one that counts.
        let _ = fs::remove_file(&self.temp_path);
    }
}

/// What was written, from the start.
impl Read for TempFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file().read(buf)
    }
}

impl Seek for TempFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.remove();
        }
    }
}

/// `.NAME.PROCESS-NUMBER.tmp` in the same folder, hence on the same disk.
fn temp_path(path: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let mut temp = OsString::from(".");
    temp.push(name);
    temp.push(format!(".{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(temp))
}

/// A rename is durable once its folder is synced; where folders cannot be opened, the system has no such notion.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
