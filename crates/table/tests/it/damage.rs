//! Random damage to bytes. The tests of several packages share this file, each with its own random numbers.

/// Makes one to four changes: bits flipped, bytes replaced, removed or doubled, the end cut off, words of `tokens` inserted.
///
/// `below` returns a random number below its argument.
pub(crate) fn damage(bytes: &mut Vec<u8>, tokens: &[&[u8]], mut below: impl FnMut(usize) -> usize) {
    for _ in 0..1 + below(4) {
        let at = below(bytes.len() + 1);
        let end = (at + below(12)).min(bytes.len());
        match below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(8),
            1 if at < bytes.len() => bytes[at] = below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.truncate(at),
            _ => drop(bytes.splice(at..end, tokens[below(tokens.len())].iter().copied())),
        }
    }
}
