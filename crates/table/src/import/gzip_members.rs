use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// All members of a gzip file one after another, each checked against its checksum.
///
/// Zero bytes after the last member are ignored as `gzip -d` ignores them, since tapes and some disks fill up blocks with them.
/// Anything else there is an error; `gzip -d` warns of it and ignores it.
pub(super) struct GzipMembers<R> {
    state: State<R>,
}

enum State<R> {
    Within(Box<GzDecoder<Counted<R>>>),
    /// Between members, after at least one.
    Between(Counted<R>),
    /// At the end, or after an error.
    Over,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(packed: R) -> Self {
        Self { state: State::member(Counted { packed, n_bytes: 0 }) }
    }
}

impl<R: BufRead> State<R> {
    fn member(packed: Counted<R>) -> Self {
        Self::Within(Box::new(GzDecoder::new(packed)))
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Over) {
                State::Within(mut member) => {
                    let n = member.read(out)?;
                    if n > 0 || out.is_empty() {
                        self.state = State::Within(member);
                        return Ok(n);
                    }
                    State::Between(member.into_inner())
                }
                State::Between(mut packed) => match packed.fill_buf()?.first() {
                    Some(0x1f) => State::member(packed),
                    Some(0) => {
                        skip_zeros(&mut packed)?;
                        State::Over
                    }
                    Some(_) => return Err(packed.follows()),
                    None => State::Over,
                },
                State::Over => return Ok(0),
            }
        }
    }
}

/// Skips zeros up to the end of the file.
fn skip_zeros(packed: &mut Counted<impl BufRead>) -> io::Result<()> {
    loop {
        let bytes = packed.fill_buf()?;
        let (n_zeros, n_bytes) = (bytes.iter().take_while(|&&byte| byte == 0).count(), bytes.len());
        packed.consume(n_zeros);
        if n_zeros < n_bytes {
            return Err(packed.follows());
        }
        if n_bytes == 0 {
            return Ok(());
        }
    }
}

/// Counts the compressed bytes that have been read.
struct Counted<R> {
    packed: R,
    n_bytes: u64,
}

impl<R> Counted<R> {
    fn follows(&self) -> io::Error {
        let problem = format!("the compressed data ends before byte {}, where something else follows; cut it off", self.n_bytes);
        io::Error::new(io::ErrorKind::InvalidData, problem)
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.packed.read(out)?;
        self.n_bytes += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.packed.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.packed.consume(n);
        self.n_bytes += n as u64;
    }
}
