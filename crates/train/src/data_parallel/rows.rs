//! What replicas find out about their rows together, before anything is trained.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::DataParallel;
use crate::error::Error;
use crate::feed::Feed;
use crate::row_digest::RowDigest;
use crate::rows::FeedRows;
use crate::survey::{Findings, Pass, Survey, Wanted};

/// The most bytes that a replica sends at a time; MPI counts in 32 bits.
pub(super) const PIECE_BYTES: usize = 64 << 20;

impl DataParallel {
    /// What a run needs to know about all rows of a set. If all replicas know the same [fingerprint](RowSource::fingerprint) of
    /// the source, each reads its share of the rows; otherwise each reads all of them, and their digests may differ. The result
    /// does not depend on the number of replicas.
    ///
    /// # Errors
    /// [`Error::Rows`] on all replicas if the source fails on one of them, or its rows are damaged.
    pub(crate) fn survey<S: FeedRows>(&self, set: &'static str, source: &S, wanted: &Wanted<'_>) -> Result<Survey, Error> {
        let pass = Pass::over(set, source, wanted);
        let is_divided = !self.is_single() && self.have_fingerprint(source.fingerprint())?;
        let mine = if is_divided { self.part_of(pass.n_sections) } else { 0..pass.n_sections };
        let mine = self.all_succeed(set, pass.checked(mine))?;
        let found = if is_divided { self.findings_of_all(mine)? } else { mine };
        Ok(pass.survey(found))
    }

    /// Compares sets of rows by their digests.
    pub(crate) fn agree_on_digests(&self, sets: [(&str, usize, usize, RowDigest); 2]) -> Result<(), Error> {
        let described = |(set, n_rows, n_cols, digest)| described_rows(set, n_rows, n_cols, digest);
        self.agree(sets.map(described).into())
    }

    /// Compares the rows of a feed: by the fingerprints of the sources, or by digests if one is unknown or they differ.
    pub(crate) fn agree_on_rows(&self, feed: &Feed<'_>) -> Result<(), Error> {
        if self.is_single() {
            return Ok(());
        }
        let (n_rows, n_cols) = (feed.n_rows(), feed.n_cols());
        let Some(source) = feed.source() else {
            return self.agree(vec![("rows on the device".to_owned(), format!("{n_rows} rows of {n_cols} columns"))]);
        };
        if self.have_fingerprint(source.fingerprint())? {
            return Ok(());
        }
        let digest = self.all_succeed(source.set(), source.digest())?;
        self.agree(vec![described_rows(source.set(), n_rows, n_cols, digest)])
    }

    /// Whether any replica says so.
    pub(crate) fn any(&self, mine: bool) -> Result<bool, Error> {
        Ok(self.gathered(vec![u8::from(mine)])?.contains(&1))
    }

    /// Whether all replicas know the same fingerprint of a source. The same rows may have several: that of a table depends on the
    /// file that it was imported from.
    fn have_fingerprint(&self, mine: Option<u64>) -> Result<bool, Error> {
        let all = self.gathered_lists(mine.as_slice())?;
        Ok(!all[0].is_empty() && all.iter().all(|of_replica| *of_replica == all[0]))
    }

    /// The value, if all replicas have one. An error of one replica is an error of all, so that none waits for another.
    fn all_succeed<T>(&self, set: &'static str, mine: Result<T, Error>) -> Result<T, Error> {
        let problem = self.first_problem(mine.as_ref().err().map(ToString::to_string))?;
        let mine = mine?;
        problem.map_or(Ok(mine), |(rank, text)| Err(Error::Rows { set, reason: format!("replica {rank}: {text}") }))
    }

    /// The problem of the first replica that has one, and its rank, on all of them.
    pub(crate) fn first_problem(&self, mine: Option<String>) -> Result<Option<(usize, String)>, Error> {
        let said = self.gather_text(mine.unwrap_or_default())?;
        Ok(said.into_iter().enumerate().find(|(_, said)| !said.is_empty()))
    }

    /// The findings of all replicas, whose sections are in the order of ranks.
    fn findings_of_all(&self, mine: Findings) -> Result<Findings, Error> {
        let wrong = self.gathered_lists(&mine.wrong)?.concat();
        let mut all = Findings {
            blocks: self.gathered_lists(&mine.blocks)?.concat(),
            labels: self.gathered_lists(&mine.labels)?.concat(),
            moments: self.gathered_lists(&mine.moments)?.concat(),
            weight_sums: self.gathered_lists(&mine.weight_sums)?.concat(),
            weights: self.gathered_lists(&mine.weights)?.concat(),
            wrong: Vec::new(),
        };
        all.note(&wrong);
        Ok(all)
    }

    /// The values of each replica, which may have different numbers of them.
    pub(super) fn gathered_lists<T: Pod>(&self, mine: &[T]) -> Result<Vec<Vec<T>>, Error> {
        let lens = self.gathered(cast_slice::<u64, u32>(&[mine.len() as u64]).to_vec())?;
        let lens: Vec<usize> =
            cast_slice::<u32, [u32; 2]>(&lens).iter().map(|&[lo, hi]| lo as usize | (hi as usize) << 32).collect();
        let mut all: Vec<Vec<T>> = lens.iter().map(|&len| vec![T::zeroed(); len]).collect();
        let mine: &[u8] = cast_slice(mine);
        let most = lens.iter().max().map_or(0, |len| len * size_of::<T>());
        for start in (0..most).step_by(PIECE_BYTES) {
            let len = PIECE_BYTES.min(most - start);
            let mut piece = vec![0; len];
            let part = &mine[start.min(mine.len())..(start + len).min(mine.len())];
            piece[..part.len()].copy_from_slice(part);
            for (list, piece) in all.iter_mut().zip(self.gathered(piece)?.chunks_exact(len)) {
                let list: &mut [u8] = cast_slice_mut(list);
                let end = (start + len).min(list.len());
                let part = &mut list[start.min(end)..end];
                part.copy_from_slice(&piece[..part.len()]);
            }
        }
        Ok(all)
    }
}

/// A set of rows, for replicas to compare.
fn described_rows(set: &str, n_rows: usize, n_cols: usize, digest: RowDigest) -> (String, String) {
    (format!("{set} rows"), format!("{n_rows} rows of {n_cols} columns with digest {digest}"))
}
