use std::f64::consts::TAU;

use brisk_loader::Key;

/// Random numbers of one event, which depend on no other event.
pub(super) struct Random {
    key: Key,
    event: u32,
    n_drawn: u32,
}

impl Random {
    pub(super) fn for_event(seed: u64, event: u64) -> Self {
        Self { key: Key { seed, epoch: (event >> 32) as u32 }, event: event as u32, n_drawn: 0 }
    }

    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.n_drawn += 1;
        (self.key.random(self.event, self.n_drawn) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential, with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Normal, with mean 0 and variance 1 (Box & Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// Uniform on the unit sphere.
    pub(super) fn direction(&mut self) -> [f64; 3] {
        let z = 2.0 * self.uniform() - 1.0;
        let (r, phi) = ((1.0 - z * z).sqrt(), TAU * self.uniform());
        [r * phi.cos(), r * phi.sin(), z]
    }
}
