//! Rows that are prefetched from memory while others are copied.

#![cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)),
    expect(unsafe_code, reason = "prefetching takes an address")
)]

/// How many rows are [prefetched](prefetch) before the first of them is read: enough to keep the memory busy, few enough that all
/// are still in the processor's second cache.
pub const PREFETCHED_ROWS: usize = 128;

/// Asks the processor to read some values into its second cache, without waiting for them. Of more than 512 bytes, it finds the
/// rest by itself.
///
/// Most rows of a shuffled order are cache misses. A [`RowSource`](crate::RowSource) that prefetches [`PREFETCHED_ROWS`] rows
/// before it copies them waits for one miss, not for each, and the second cache has room for more outstanding misses than the
/// first, to which ordinary reads go. Does nothing where there is no such instruction: on processors other than x86-64 and
/// aarch64.
///
/// # Examples
/// ```
/// let stored: Vec<f32> = (0..1 << 20).map(|value| value as f32).collect();
/// let rows = [70_000, 3, 1_000].map(|row| &stored[4 * row..][..4]);
/// rows.iter().for_each(|row| brisk_loader::prefetch(row));
/// let copied: Vec<f32> = rows.concat();
/// assert_eq!(copied[4..8], [12.0, 13.0, 14.0, 15.0]);
/// ```
#[inline]
pub fn prefetch<T>(values: &[T]) {
    const LINE_BYTES: usize = 64;
    const MAX_BYTES: usize = 8 * LINE_BYTES;
    let (start, n_bytes) = (values.as_ptr().cast::<u8>(), size_of_val(values).min(MAX_BYTES));
    if n_bytes > 0 {
        (0..n_bytes).step_by(LINE_BYTES).for_each(|at| line(start.wrapping_add(at)));
        // The last line, if the values begin within the first.
        line(start.wrapping_add(n_bytes - 1));
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: a hint, which reads nothing that the program can see, and is ignored for an address that is not valid.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn line(address: *const u8) {
    // SAFETY: a hint, which reads nothing that the program can see, and is ignored for an address that is not valid.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
#[inline]
fn line(_: *const u8) {}
