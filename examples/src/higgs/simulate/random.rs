//! Counter-based random numbers: every event has a separate stream.

/// The stream of one event: splitmix64 (Steele, Lea, Flood 2014), started at a hash of `(seed, event)`.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
    /// The second of a pair of normal numbers, until it is requested.
    spare: Option<f64>,
}

impl Random {
    /// The same `(seed, event)` always gives the same stream.
    pub(crate) fn for_event(seed: u64, event: u64) -> Self {
        Self { state: mix(mix(seed.wrapping_add(STEP)) ^ event.wrapping_mul(STEP)), spare: None }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Exponential, mean 1: `-ln(1 - u)`.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Normal, mean 0, variance 1: Marsaglia's polar method, which makes two at a time.
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (x, y, s) = self.disk();
        let scale = (-2.0 * s.ln() / s).sqrt();
        self.spare = Some(y * scale);
        x * scale
    }

    /// A direction in the transverse plane, `(cos φ, sin φ)`, φ uniform.
    pub(crate) fn on_circle(&mut self) -> [f64; 2] {
        let (x, y, s) = self.disk();
        let scale = 1.0 / s.sqrt();
        [x * scale, y * scale]
    }

    /// A direction in space, uniform on the sphere (Marsaglia 1972).
    pub(crate) fn on_sphere(&mut self) -> [f64; 3] {
        let (x, y, s) = self.disk();
        let scale = 2.0 * (1.0 - s).sqrt();
        [x * scale, y * scale, 1.0 - 2.0 * s]
    }

    /// The Cauchy distribution, `density ∝ 1/(1 + t²)`: the slope of a uniform direction.
    pub(crate) fn cauchy(&mut self) -> f64 {
        let (x, y, _) = self.disk();
        y / x
    }

    /// A point of the unit disk except its centre, and its squared distance from the centre. Both coordinates come from one hash and
    /// are odd multiples of 2⁻³², so neither is ever zero.
    fn disk(&mut self) -> (f64, f64, f64) {
        loop {
            let bits = self.next();
            let coordinate = |word: u32| (f64::from(word.cast_signed()) + 0.5) * (1.0 / (1_u64 << 31) as f64);
            let (x, y) = (coordinate(bits as u32), coordinate((bits >> 32) as u32));
            let s = x * x + y * y;
            if s < 1.0 {
                return (x, y, s);
            }
        }
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer of splitmix64: a bijection of `u64` in which every input bit affects every output bit.
fn mix(mut h: u64) -> u64 {
    h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    h ^ (h >> 31)
}
