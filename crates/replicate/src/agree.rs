use crate::collective::{Collective, CollectiveExt};
use crate::error::Error;
use crate::reduce_op::ReduceOp;

/// Makes sure that all ranks have the same list of names and values, before anything is trained: models that differ would
/// otherwise be averaged into garbage.
///
/// An entry is, for example, a parameter and its shape (`layers.0.weight`, `[256, 28] f32`), or a setting and its value. The
/// version of this crate is part of the list.
///
/// # Errors
/// [`Error::Disagreement`] on every rank, with the first entry that differs, counted from 0; those of the collective.
pub fn agree(collective: &mut dyn Collective, mine: &[(String, String)]) -> Result<(), Error> {
    let version = ("the version of brisk-replicate".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let mine: Vec<&(String, String)> = std::iter::once(&version).chain(mine).collect();
    let world_size = collective.world_size();
    let hashes: Vec<[u32; 2]> = mine.iter().map(|entry| hash(entry)).collect();

    let mut longest = [hashes.len() as u32];
    collective.all_reduce(&mut longest, ReduceOp::Max)?;
    let n = longest[0] as usize;
    // A missing entry hashes to zeros.
    let mut flat: Vec<u32> = hashes.iter().flatten().copied().collect();
    flat.resize(2 * n, 0);
    let mut all = vec![0; 2 * n * world_size];
    collective.all_gather(&flat, &mut all)?;

    let of = |rank: usize, entry: usize| &all[2 * (rank * n + entry)..][..2];
    let differs = |entry: usize| (1..world_size).find(|&other| of(other, entry) != of(0, entry)).map(|other| (entry, other));
    let Some((entry, other)) = (0..n).find_map(differs) else { return Ok(()) };

    // Both ranks broadcast their entry, so that the error on every rank shows both. A missing entry is empty.
    let text = |entry: Option<&&(String, String)>| entry.map_or(String::new(), |(name, value)| format!("{name}\n{value}"));
    let [first, second] = [0, other].map(|root| shared_text(collective, root, text(mine.get(entry))));
    let (first, second) = (first?, second?);
    let [first, second] = [&first, &second].map(|text| text.split_once('\n'));
    let what = match (first, second) {
        // Entry 0 is the version.
        (Some((a, _)), Some((b, _))) if a != b => format!("entry {} (`{a}`, `{b}`)", entry.saturating_sub(1)),
        (Some((name, _)), _) | (_, Some((name, _))) => format!("`{name}`"),
        (None, None) => format!("entry {}", entry.saturating_sub(1)),
    };
    let [mine, theirs] = [first, second].map(|entry| entry.map_or("nothing", |(_, value)| value));
    Err(Error::Disagreement { what, rank: 0, mine: mine.to_owned(), other, theirs: theirs.to_owned() })
}

/// Broadcasts the text of rank `root`.
fn shared_text(collective: &mut dyn Collective, root: usize, text: String) -> Result<String, Error> {
    let mut len = [text.len() as u32];
    collective.broadcast(&mut len, root)?;
    let mut bytes = text.into_bytes();
    bytes.resize(len[0] as usize, 0);
    collective.broadcast(&mut bytes, root)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// FNV-1a, 64 bit: the same on every machine and in every version of Rust.
fn hash((name, value): &(String, String)) -> [u32; 2] {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes().chain([0]).chain(value.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    [hash as u32, (hash >> 32) as u32]
}
