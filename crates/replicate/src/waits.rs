use std::time::Duration;

/// How long the others have waited for each rank.
#[derive(Debug)]
pub(crate) struct Waits {
    by_rank: Vec<Duration>,
}

impl Waits {
    pub(crate) fn new(n_ranks: usize) -> Self {
        Self { by_rank: vec![Duration::ZERO; n_ranks] }
    }

    /// The ranks have called an operation, each at a time after a moment that is the same for all. The others waited for the last
    /// one: the mean of their times is added.
    pub(crate) fn add(&mut self, came: impl Iterator<Item = Duration>) {
        let (mut sum, mut last) = (Duration::ZERO, (0, Duration::ZERO));
        for (rank, came) in came.enumerate() {
            sum += came;
            if came > last.1 {
                last = (rank, came);
            }
        }
        let n_ranks = self.by_rank.len() as u32;
        if n_ranks > 1 {
            self.by_rank[last.0] += (last.1 * n_ranks - sum) / (n_ranks - 1);
        }
    }

    /// The time by rank, which begins again at zero.
    pub(crate) fn take(&mut self) -> Vec<Duration> {
        let nothing = vec![Duration::ZERO; self.by_rank.len()];
        std::mem::replace(&mut self.by_rank, nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rank_is_the_one_waited_for() {
        let ms = Duration::from_millis;
        let mut waits = Waits::new(3);
        waits.add([ms(4), ms(10), ms(6)].into_iter());
        waits.add([ms(30), ms(0), ms(0)].into_iter());
        waits.add([ms(1), ms(2), ms(1)].into_iter());
        waits.add([ms(7); 3].into_iter());
        assert_eq!(waits.take(), [ms(30), ms(6), ms(0)]);
        assert_eq!(waits.take(), [ms(0); 3]);
        let mut single = Waits::new(1);
        single.add([ms(5)].into_iter());
        assert_eq!(single.take(), [ms(0)]);
    }
}
