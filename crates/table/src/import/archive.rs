//! The members of a tar archive, none of which may be cut short.

use std::cell::Cell;
use std::io::{self, Read};

use tar::Archive;

/// What a caller is told of a member.
pub(crate) enum Member<'a> {
    File(&'a mut dyn Read),
    Folder,
}

/// Whether an archive must end with the blocks that mark its end.
#[cfg_attr(not(feature = "images"), expect(unreachable_pub, reason = "only the options of images have it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ArchiveEnd {
    /// It must, since an archive that was cut off between two files has none. Any program that writes whole archives adds them.
    #[default]
    Required,
    /// It need not. Then files may be missing without notice.
    Optional,
}

/// Calls `each` with the name and the content of every folder and file of an archive, until it returns that it needs no more.
/// Links and devices are left out.
///
/// # Errors
/// Those of reading and of `each`; an archive that ends within a file or, if `end` says so, without an end.
pub(crate) fn for_each_member(
    archive: impl Read,
    end: ArchiveEnd,
    mut each: impl FnMut(String, Member<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let was_cut = Cell::new(false);
    let mut archive = Archive::new(Noting { inner: archive, at_end: &was_cut });
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let name = entry.path()?.to_string_lossy().into_owned();
        let goes_on = match (kind.is_file(), kind.is_dir()) {
            (true, _) => {
                let left = entry.size();
                each(name, Member::File(&mut Whole { inner: &mut entry, left }))?
            }
            (_, true) => each(name, Member::Folder)?,
            _ => true,
        };
        if !goes_on {
            return Ok(());
        }
    }
    // The reader of entries stops before the end of its input only at the blocks that end an archive.
    if was_cut.get() && end == ArchiveEnd::Required {
        return Err(cut("there are no blocks at its end, so files may be missing"));
    }
    // The rest is padding. Reading it checks a compressed archive to its end.
    let mut rest = archive.into_inner();
    let mut buf = [0; 1 << 13];
    loop {
        match rest.read(&mut buf)? {
            0 => return Ok(()),
            n if buf[..n].iter().any(|&byte| byte != 0) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "another archive follows its end; unpack both"));
            }
            _ => {}
        }
    }
}

fn cut(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, problem)
}

/// Notes when its input ends.
struct Noting<'a, R> {
    inner: R,
    at_end: &'a Cell<bool>,
}

impl<R: Read> Read for Noting<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        if n == 0 && !buf.is_empty() {
            self.at_end.set(true);
        }
        Ok(n)
    }
}

/// A member, which is an error if it ends early.
struct Whole<'a, R> {
    inner: &'a mut R,
    left: u64,
}

impl<R: Read> Read for Whole<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.left = self.left.saturating_sub(n as u64);
        if n == 0 && !buf.is_empty() && self.left > 0 {
            return Err(cut("it ends within a file"));
        }
        Ok(n)
    }
}
