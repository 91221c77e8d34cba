//! Checkpoints of state that is sharded across replicas.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use brisk_atomic_file::read_regular_file;
use brisk_nn::{Parameters, Placement, ShardedBucket, Sharding};
use brisk_replicate::Wire;
use bytemuck::cast_slice;

use super::rows::PIECE_BYTES;
use super::{CheckpointFiles, DataParallel};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::index::Index;
use crate::error::Error;

impl DataParallel {
    /// Whether this replica writes the tensors of a bucket.
    pub(crate) fn writes(&self, bucket: usize) -> bool {
        match self.config.files {
            CheckpointFiles::One => self.rank() == 0,
            CheckpointFiles::OneAReplica => bucket % self.world_size() == self.rank(),
        }
    }

    /// All elements of a buffer that is laid out as the parameters are and sharded across the replicas, on each of them. `held`
    /// is this replica's shard, as [`Parameters::state_of`] returns it. If the parameters are not sharded, the result is `held`.
    ///
    /// # Errors
    /// [`Error::Replica`].
    pub fn whole(&self, params: &Parameters, held: &[f32]) -> Result<Vec<f32>, Error> {
        self.assembled(params, params.sharding(), held)
    }

    /// All values of the parameters, given those that this replica keeps.
    pub(crate) fn whole_values(&self, params: &Parameters, held: &[f32]) -> Result<Vec<f32>, Error> {
        self.assembled(params, params.sharding().filter(|sharding| sharding.values == Placement::Sharded), held)
    }

    fn assembled(&self, params: &Parameters, sharding: Option<&Sharding>, held: &[f32]) -> Result<Vec<f32>, Error> {
        let Some(sharding) = sharding else { return Ok(held.to_vec()) };
        let mut whole = vec![0.0; params.len()];
        for bucket in self.assembled_buckets(sharding, held) {
            let (elements, values) = bucket?;
            whole[elements].copy_from_slice(&values);
        }
        Ok(whole)
    }

    /// The elements and the values of each bucket of which every replica keeps its own piece, on every replica.
    pub(crate) fn assembled_buckets(
        &self,
        sharding: &Sharding,
        held: &[f32],
    ) -> impl Iterator<Item = Result<(Range<usize>, Vec<f32>), Error>> {
        sharding.own().map(|(ShardedBucket { elements, piece_len, .. }, own)| {
            let mut piece = held[own].to_vec();
            piece.resize(*piece_len, 0.0);
            let mut values = self.all_gather(piece)?;
            values.truncate(elements.len());
            Ok((elements.clone(), values))
        })
    }

    /// The path that replica 0 writes to, on every replica that takes part in writing.
    pub(crate) fn path_for_all(&self, path: Option<PathBuf>, params: &Parameters) -> Result<Option<PathBuf>, Error> {
        if params.sharding().is_none() && self.config.files == CheckpointFiles::One && self.config.wire == Wire::F32 {
            return Ok(path);
        }
        let path = path.map(|path| utf8(&path).map(str::to_owned)).transpose()?;
        let path = self.broadcast_text(path.unwrap_or_default())?;
        Ok((!path.is_empty()).then(|| path.into()))
    }

    /// Writes each replica's part of a checkpoint, and returns the file of this replica if each of them has one. Replica 0 gives
    /// a generation that the files' is to be greater than. All replicas call it.
    pub(crate) fn save(&self, mine: &Checkpoint, path: &Path, newest: u64) -> Result<Option<PathBuf>, Error> {
        if self.config.files == CheckpointFiles::One {
            if self.rank() == 0 {
                mine.save(path)?;
                Index::remove(path);
            }
            return Ok(None);
        }
        let next = || Index::next_generation(path).max(newest.saturating_add(1));
        let generation = if self.rank() == 0 { next() } else { 0 };
        let generation: u64 = self.broadcast_text(generation.to_string())?.parse().unwrap_or(generation);
        let file = |rank: usize| Index::file_name(path, generation, rank, self.world_size());
        let own_path = path.with_file_name(file(self.rank())?);
        mine.save(&own_path)?;
        // A replica answers once it has written its file.
        let names = self.gather_text(mine.tensors().map(|(name, ..)| name).collect::<Vec<_>>().join("\n"))?;
        if self.rank() == 0 {
            let mut tensors = BTreeMap::new();
            for (rank, names) in names.iter().enumerate() {
                let file = file(rank)?;
                tensors.extend(names.lines().map(|name| (name.to_owned(), file.clone())));
            }
            let index = Index::new(generation, tensors);
            index.save(path)?;
            index.remove_other_files(path);
            // A single file of that name, from an earlier run, would be mistaken for the latest. Usually there is none.
            drop(std::fs::remove_file(path));
        }
        self.communication.as_ref().map_or(Ok(()), |communication| communication.barrier().wait())?;
        Ok(Some(own_path))
    }

    /// Reads and checks a checkpoint together with the other replicas, which all get the whole of it
    /// ([`Training::load_checkpoint`](crate::Training::load_checkpoint) loads what one of them needs): each file is read by one
    /// of them, which sends it to the others. With as many replicas as have written [a file each](CheckpointFiles::OneAReplica),
    /// each reads its own file; otherwise they take the files in turn. A single file, and the index of several, are read by
    /// replica 0. All replicas call it, with a path of the same name.
    ///
    /// # Cost
    /// The memory of the largest file, in addition to that of the checkpoint.
    /// # Errors
    /// Those of [`Checkpoint::load`], on all replicas; [`Error::Replica`], also for paths of different names.
    pub fn load_checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint, Error> {
        let path = path.as_ref();
        self.agree_on_name(path)?;
        Checkpoint::load_by(path, &mut |number, path| self.read_by(number % self.world_size(), path, read_regular_file))
    }

    pub(super) fn agree_on_name(&self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.agree(vec![("the name of the checkpoint".to_owned(), name)])
    }

    /// The bytes of a file that one replica reads, or its error, on all replicas.
    pub(super) fn read_by(
        &self,
        reader: usize,
        path: &Path,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<io::Result<Vec<u8>>, Error> {
        let mine = if self.rank() == reader { read(path) } else { Ok(Vec::new()) };
        let Some(communication) = &self.communication else { return Ok(mine) };
        let problem = mine.as_ref().err().map(|error| (error.kind() == io::ErrorKind::NotFound, error.to_string()));
        let [is_missing, said] = problem.map_or_else(Default::default, |(is_missing, said)| [is_missing.to_string(), said]);
        let said = self.gather_text(said)?.swap_remove(reader);
        if !said.is_empty() {
            let is_missing = self.gather_text(is_missing)?[reader] == "true";
            let kind = if is_missing { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
            return Ok(Err(io::Error::new(kind, said)));
        }
        let mut bytes = mine.unwrap_or_default();
        let len = communication.broadcast(cast_slice::<u64, u32>(&[bytes.len() as u64]).to_vec(), reader).wait()?;
        bytes.resize((u64::from(len[0]) | u64::from(len[1]) << 32) as usize, 0);
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            let sent = communication.broadcast(piece.to_vec(), reader).wait()?;
            piece.copy_from_slice(&sent);
        }
        Ok(Ok(bytes))
    }

    /// Checks that all replicas resume from the same checkpoint.
    pub(crate) fn agree_on_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if self.is_single() {
            return Ok(());
        }
        let content = format!("content {:016x}", checkpoint.fingerprint());
        self.agree(vec![("the checkpoint to resume from".to_owned(), content)])
    }

    /// The text of replica 0, on every replica.
    fn broadcast_text(&self, text: String) -> Result<String, Error> {
        Ok(self.gather_text(text)?.swap_remove(0))
    }

    /// The text of each replica, by rank.
    pub(crate) fn gather_text(&self, text: String) -> Result<Vec<String>, Error> {
        let texts = self.gathered_lists(text.as_bytes())?;
        Ok(texts.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
    }
}

fn utf8(path: &Path) -> Result<&str, Error> {
    let cause = || io::Error::new(io::ErrorKind::InvalidInput, "it is not UTF-8, and replicas exchange paths as UTF-8");
    path.to_str().ok_or_else(|| Error::Io { path: path.to_owned(), action: "name the path", cause: cause() })
}
