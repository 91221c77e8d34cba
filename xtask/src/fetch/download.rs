//! Downloads one file: into `NAME.part`, which is renamed once its size and checksum are right.

#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use ureq::Agent;
use ureq::http::Response;

use super::catalogue::File;

/// Attempts without progress after which a download fails.
const MAX_ATTEMPTS: u32 = 5;

/// The bytes of an attempt that count as progress, which a server that sends a few bytes per connection does not make.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Downloads files over HTTP.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    /// The pause before the second attempt, which doubles before each further one.
    pause: Duration,
    /// The bytes that count as progress.
    progress: u64,
}

/// The result of an attempt.
enum Attempt {
    /// All bytes have been downloaded.
    Complete,
    /// The connection failed or ended early, for this reason.
    Cut(String),
}

impl Client {
    /// A client that waits for slow servers, but not forever.
    pub(super) fn new() -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)));
        Self { agent: config.build().into(), pause: Duration::from_secs(1), progress: PROGRESS_BYTES }
    }

    /// Downloads `file` from `url` into `folder`, unless it already exists; `say` gets lines that report the progress.
    pub(super) fn download(&self, url: &str, file: &File, folder: &Path, say: &mut dyn FnMut(String)) -> Result<()> {
        let dest = folder.join(file.name);
        if dest.exists() {
            check(&dest, file).with_context(|| format!("{}: not the published file; remove it and try again", dest.display()))?;
            say(format!("{}: downloaded already", dest.display()));
            return Ok(());
        }
        ensure!(
            ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)),
            "{url}: only http:// and https:// can be downloaded; copy a file of your own to {}, which is then checked",
            dest.display()
        );
        let part = folder.join(format!("{}.part", file.name));
        let mut out = OpenOptions::new().create(true).append(true).read(true).open(&part).with_context(|| cannot_write(&part))?;
        if let Err(fs::TryLockError::WouldBlock) = out.try_lock() {
            bail!("{}: another process is downloading this file; wait until it ends", part.display());
        }
        say(format!("{url}: {} MB", file.n_bytes / 1_000_000));
        let mut attempts = 0;
        loop {
            let before = length(&out, &part)?;
            match self.attempt(url, file, &mut out, &part, say)? {
                Attempt::Complete => break,
                Attempt::Cut(reason) => {
                    attempts = if length(&out, &part)? >= before + self.progress { 1 } else { attempts + 1 };
                    ensure!(
                        attempts < MAX_ATTEMPTS,
                        "{url}: {reason}, {MAX_ATTEMPTS} times in a row; {} has the bytes so far, and the same command continues from there",
                        part.display()
                    );
                    say(format!("{reason}; trying again"));
                    sleep(self.pause * 2_u32.pow(attempts - 1));
                }
            }
        }
        out.sync_all().with_context(|| cannot_write(&part))?;
        if let Err(error) = check(&part, file) {
            fs::remove_file(&part).with_context(|| cannot_write(&part))?;
            return Err(
                error.context(format!("{url}: not the published file, and was removed; try again, or a mirror with `--from`"))
            );
        }
        fs::rename(&part, &dest).with_context(|| cannot_write(&dest))?;
        say(format!("{}: complete, and its {} checksum is right", dest.display(), file.checksum.name()));
        Ok(())
    }

    /// Requests the missing bytes and appends them.
    fn attempt(&self, url: &str, file: &File, out: &mut fs::File, part: &Path, say: &mut dyn FnMut(String)) -> Result<Attempt> {
        let mut have = length(out, part)?;
        if have > file.n_bytes {
            // It cannot be the beginning of this file.
            restart(out, part)?;
            have = 0;
        }
        if have == file.n_bytes {
            return Ok(Attempt::Complete);
        }
        let mut request = self.agent.get(url);
        // If a server stalls, the connection is closed and the rest is requested again: it has one second per 100 kB.
        let limit = Duration::from_secs(60 + (file.n_bytes - have) / 100_000);
        request = request.config().timeout_recv_body(Some(limit)).build();
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return Ok(Attempt::Cut(error.to_string())),
        };
        match response.status().as_u16() {
            200 if have > 0 => {
                say("the server cannot continue a download; starting again".to_owned());
                restart(out, part)?;
                have = 0;
            }
            200 => {}
            206 if range_start(&response) == Some(have) => say(format!("continuing after {} MB", have / 1_000_000)),
            206 | 416 => {
                restart(out, part)?;
                return Ok(Attempt::Cut("the server sent other bytes than requested".to_owned()));
            }
            status @ (408 | 429 | 500..=599) => return Ok(Attempt::Cut(format!("the server answers with status {status}"))),
            404 | 410 => {
                bail!("{url}: there is no such file on the server (status {}); name a mirror with `--from`", response.status())
            }
            _ => bail!("{url}: the server refuses (status {}); try later, or name a mirror with `--from`", response.status()),
        }
        if let Some(rest) = response.body().content_length()
            && have + rest != file.n_bytes
        {
            bail!("{url}: the file has {} bytes, expected {}; name a mirror with `--from`", have + rest, file.n_bytes);
        }
        append(&mut response.into_body().into_reader(), out, have, file, say)
            .with_context(|| format!("{}; make room: the same command continues from the bytes so far", cannot_write(part)))
    }
}

/// Copies the rest of the file to the end of `out`. Errors of the server are an [`Attempt`], those of the disk an `Err`.
fn append(
    from: &mut dyn Read,
    out: &mut fs::File,
    mut have: u64,
    file: &File,
    say: &mut dyn FnMut(String),
) -> io::Result<Attempt> {
    let mut buffer = vec![0; BUFFER_BYTES];
    while have < file.n_bytes {
        let wanted = (file.n_bytes - have).min(BUFFER_BYTES as u64) as usize;
        let n = match from.read(&mut buffer[..wanted]) {
            Ok(0) => return Ok(Attempt::Cut("the connection ended early".to_owned())),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Attempt::Cut(format!("the connection failed: {error}"))),
        };
        out.write_all(&buffer[..n])?;
        let tenths = |bytes: u64| 10 * bytes / file.n_bytes;
        let before = have;
        have += n as u64;
        if file.n_bytes > 10_000_000 && tenths(have) > tenths(before) {
            say(format!("{} %", 10 * tenths(have)));
        }
    }
    Ok(Attempt::Complete)
}

/// The offset of the first byte of a partial response: `Content-Range: bytes 100-199/200`.
fn range_start(response: &Response<ureq::Body>) -> Option<u64> {
    let range = response.headers().get("content-range")?.to_str().ok()?;
    range.trim().strip_prefix("bytes")?.trim().split('-').next()?.parse().ok()
}

/// Compares size and checksum with the published ones.
fn check(path: &Path, file: &File) -> Result<()> {
    let found = fs::metadata(path).with_context(|| cannot_read(path))?.len();
    ensure!(found == file.n_bytes, "it has {found} bytes, expected {}", file.n_bytes);
    let found = file.checksum.of_file(path).with_context(|| cannot_read(path))?;
    let expected = file.checksum.expected();
    ensure!(found == expected, "its {} checksum is {found}, expected {expected}", file.checksum.name());
    Ok(())
}

fn length(file: &fs::File, path: &Path) -> Result<u64> {
    Ok(file.metadata().with_context(|| cannot_read(path))?.len())
}

fn restart(file: &mut fs::File, path: &Path) -> Result<()> {
    file.set_len(0).and_then(|()| file.rewind()).with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("{}: cannot be written", path.display())
}

fn cannot_read(path: &Path) -> String {
    format!("{}: cannot be read", path.display())
}
