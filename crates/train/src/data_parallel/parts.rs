//! Checkpoints of several files of which each replica reads a part.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorInfo};

use super::DataParallel;
use crate::checkpoint::checksum::Content;
use crate::checkpoint::head::Head;
use crate::checkpoint::index::Index;
use crate::checkpoint::source::Source;
use crate::checkpoint::{Checkpoint, Fnv, Part, Stored};
use crate::error::Error;

/// Bytes of the values in a file, counted from the end of its head.
type Bytes = Range<usize>;

impl DataParallel {
    /// Loads the `parts` of tensors that this replica needs, and all of other tensors. Replicas may need different parts, of the
    /// same tensors, and together all elements. All replicas call it.
    pub(crate) fn load_part(&self, source: Source<'_>, path: &Path, parts: &HashMap<String, Part>) -> Result<Checkpoint, Error> {
        self.load_part_of(source, path, parts).map_err(|error| source.named(error))
    }

    fn load_part_of(&self, source: Source<'_>, path: &Path, parts: &HashMap<String, Part>) -> Result<Checkpoint, Error> {
        if self.is_single() {
            return Checkpoint::load_by(path, &mut |_, path| Ok(source.read(path)));
        }
        self.agree_on_name(path)?;
        let whole = |path: &Path| source.read(path);
        let index = match Checkpoint::find(path, &mut |number, path| self.read_by(number % self.world_size(), path, whole))? {
            Stored::File(whole) => return Ok(whole),
            Stored::Index(index) => index,
        };
        let mut heads = Fnv::default();
        let load =
            &mut |number: usize, path: &Path| self.load_file((source, number % self.world_size()), path, parts, &mut heads);
        Ok(Checkpoint::of_parts(&Index::path_of(path), &index, load)?.part_of(&heads))
    }

    /// Loads a file, of which `reader` reads the head for all.
    fn load_file(
        &self,
        (source, reader): (Source<'_>, usize),
        path: &Path,
        parts: &HashMap<String, Part>,
        heads: &mut Fnv,
    ) -> Result<Checkpoint, Error> {
        let failed = |cause| Error::Io { path: path.to_owned(), action: "read the checkpoint", cause };
        let read_head = |path: &Path| {
            let (len, bytes) = source.read_head(path)?;
            Ok([&len.to_le_bytes()[..], &bytes].concat())
        };
        let bytes = self.read_by(reader, path, read_head)?.map_err(failed)?;
        let (len_bytes, bytes) = bytes.split_first_chunk().expect("the length comes first");
        let head = Head::parse(bytes, u64::from_le_bytes(*len_bytes), path)?;
        heads.write_all(&head.bytes).map_err(failed)?;

        // What all replicas need is laid end to end, and cut into a share for each.
        let tensors = head.tensors();
        let (own, common): (Vec<_>, Vec<_>) =
            tensors.iter().map(|(name, info)| (info, self.needed_part(name, info, parts))).partition(|(_, part)| part.is_some());
        let own: Vec<Bytes> = own.into_iter().filter_map(|(info, part)| Some(bytes_of(info, &part?))).collect();
        let common: Vec<Bytes> = common.into_iter().map(|(info, _)| info.data_offsets.0..info.data_offsets.1).collect();
        let n_common = common.iter().map(Range::len).sum();
        let share = within(&common, self.part_of(n_common));

        let start = head.bytes.len();
        let read = |ranges: &[Bytes]| source.read_ranges(path, start, ranges);
        let mine = read(&own).and_then(|own| Ok((own, read(&share)?)));
        let (mine, share_of_common) = self.all_read(path, mine)?;
        let content = self.content(path, [(&own, &mine), (&share, &share_of_common)])?;
        let all_common = self.gathered_lists(&share_of_common)?.concat();

        let (mut next_own, mut next_common) = (0, 0);
        let mut places = HashMap::new();
        for (name, info) in &tensors {
            let part = self.needed_part(name, info, parts);
            let (next, len) = match &part {
                Some(part) => (&mut next_own, bytes_of(info, part).len()),
                None => (&mut next_common, info.data_offsets.1 - info.data_offsets.0),
            };
            places.insert(name.as_str(), (*next..*next + len, part));
            *next += len;
        }
        Checkpoint::of_head(&head, &content, path, |name, _| {
            let (place, part) = &places[name];
            (if part.is_some() { &mine[place.clone()] } else { &all_common[place.clone()] }, part.clone())
        })
    }

    /// The elements of a tensor that this replica needs; `None` if all replicas need all.
    fn needed_part(&self, name: &str, info: &TensorInfo, parts: &HashMap<String, Part>) -> Option<Range<usize>> {
        let len = (info.data_offsets.1 - info.data_offsets.0) / size_of::<f32>();
        if info.dtype != Dtype::F32 {
            return None;
        }
        let errors = self.needs_errors(name).map(|is_needed| if is_needed { 0..len } else { 0..0 });
        // A tensor of another length is that of another model, which is refused later.
        errors.or_else(|| parts.get(name).filter(|part| part.len == len).map(|part| part.own.clone()))
    }

    /// What was read, if all replicas have read theirs.
    fn all_read<T>(&self, path: &Path, mine: io::Result<T>) -> Result<T, Error> {
        let said = self.gather_text(mine.as_ref().err().map(ToString::to_string).unwrap_or_default())?;
        let failed = |cause| Error::Io { path: path.to_owned(), action: "read this replica's part of the checkpoint", cause };
        let mine = mine.map_err(failed)?;
        match said.iter().enumerate().find(|(_, said)| !said.is_empty()) {
            None => Ok(mine),
            Some((rank, said)) => Err(failed(io::Error::other(format!("replica {rank}: {said}")))),
        }
    }

    /// The content of a file, put together from what each replica has read.
    fn content(&self, path: &Path, read: [(&Vec<Bytes>, &Vec<u8>); 2]) -> Result<Content, Error> {
        let mut mine = Vec::new();
        for (ranges, bytes) in read {
            let mut rest = &bytes[..];
            for range in ranges.iter().filter(|range| !range.is_empty()) {
                let (these, others) = rest.split_at(range.len());
                rest = others;
                mine.push([range.start as u64, range.len() as u64, Content::of([these]).crc().into()]);
            }
        }
        let mut all: Vec<[u64; 3]> = self.gathered_lists(&mine)?.concat();
        all.sort_unstable();
        let mut content = Content::default();
        for [start, len, crc] in all {
            if start != content.len_bytes {
                let reason = format!("no replica has read its bytes {} to {start}, or several have", content.len_bytes);
                return Err(Error::Damaged { path: path.to_owned(), len_bytes: None, reason });
            }
            content.append(&Content::with_crc(crc as u32, len));
        }
        Ok(content)
    }
}

/// The bytes of some elements of an f32 tensor.
fn bytes_of(info: &TensorInfo, elements: &Range<usize>) -> Bytes {
    let at = |element: usize| info.data_offsets.0 + element * size_of::<f32>();
    at(elements.start)..at(elements.end)
}

/// The ranges laid end to end, of which these bytes are kept.
fn within(ranges: &[Bytes], kept: Bytes) -> Vec<Bytes> {
    let mut end = 0;
    let cut = ranges.iter().map(|range| {
        let start = end;
        end += range.len();
        let [from, to] = [kept.start, kept.end].map(|at| range.start + at.clamp(start, end) - start);
        from..to
    });
    cut.filter(|range| !range.is_empty()).collect()
}
