use crate::error::Error;
use crate::shuffle::{SPLIT_EPOCH, Shuffle};
use crate::source::RowSource;
use crate::split::{check_fractions, n_rows_of};
use crate::subset::Subset;

/// Like [`split`](crate::split), but distributes whole blocks of `block_rows` consecutive rows, so that a part that is streamed
/// reads its own blocks of a file and no others. Within a part, rows are in the order of the source.
///
/// Blocks are assigned at random, depending on the seed: the parts of a table whose rows are sorted are still alike if it has
/// many blocks. The number of blocks of each part is its rounded share. Stores four bytes per block.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and sum to 1; [`Error::NoBlock`] if a part with a fraction above 0 would
/// have no block; [`Error::Blocks`] for blocks of 0 rows; [`Error::TooManyRows`] beyond 2³² − 1.
///
/// # Examples
/// ```
/// use brisk_loader::{RowSource, Rows, split_by_blocks};
///
/// let rows = Rows::new(vec![0.0; 1000], vec![0.0; 1000], 1)?;
/// let [train, valid] = split_by_blocks(&rows, 42, 50, [0.9, 0.1])?;
/// assert_eq!((train.n_rows(), valid.n_rows()), (900, 100));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn split_by_blocks<S: RowSource + Clone, const N: usize>(
    source: S,
    seed: u64,
    block_rows: u32,
    fractions: [f64; N],
) -> Result<[Subset<S>; N], Error> {
    check_fractions(&fractions)?;
    let n_rows = n_rows_of(&source)?;
    if block_rows == 0 {
        return Err(Error::Blocks { block_rows, window_blocks: 1 });
    }
    let n_blocks = n_rows.div_ceil(block_rows);
    let shuffle = Shuffle::new(n_blocks, seed, SPLIT_EPOCH);
    let (mut share, mut start) = (0.0, 0);
    let mut blocks_of = Vec::with_capacity(N);
    for fraction in fractions {
        share += fraction;
        // Fractions sum to 1 but for rounding, which is far less than a block.
        let end = ((f64::from(n_blocks) * share).round() as u32).clamp(start, n_blocks);
        if fraction > 0.0 && end == start {
            return Err(Error::NoBlock { fraction, n_blocks, block_rows });
        }
        let mut blocks: Vec<u32> = (start..end).map(|position| shuffle.row(position)).collect();
        blocks.sort_unstable();
        blocks_of.push(blocks);
        start = end;
    }
    let mut blocks_of = blocks_of.into_iter();
    Ok(std::array::from_fn(|_| Subset::of_blocks(source.clone(), blocks_of.next().unwrap_or_default(), block_rows, n_rows)))
}
