//! Parameters that are sharded across replicas.

use std::sync::Arc;

use brisk_kernels::DType;
use brisk_tensor::program::Slice;
use brisk_tensor::{AllGather, Error, Graph, Persistent};

use super::{ALIGN, Parameters};
use crate::newest::Newest;
use crate::origin::Origin;
use crate::sharding::{Piece, Placement, ShardedBucket, Sharding};

impl Parameters {
    /// The same parameters, sharded across replicas: this replica keeps its own pieces between two steps. An optimizer made for
    /// them keeps the state of those pieces only. By `replicas`, an optimizer whose update of a parameter depends on all of its
    /// elements gets those that it does not have.
    ///
    /// # Errors
    /// [`Error::Shape`] if the buckets do not cover the elements, or a piece does not begin and end at a multiple of 64.
    pub fn sharded(self, sharding: Sharding, replicas: Arc<dyn AllGather>) -> Result<Self, Error> {
        let n: usize = sharding.buckets.iter().map(|bucket| bucket.elements.len()).sum();
        let fits = |bucket: &ShardedBucket| {
            let ends = [bucket.elements.start, bucket.elements.end, bucket.own.start, bucket.own.end];
            let is_within = bucket.elements.start <= bucket.own.start && bucket.own.end <= bucket.elements.end;
            is_within
                && bucket.own.start <= bucket.own.end
                && bucket.own.len() <= bucket.piece_len
                && ends.iter().all(|end| end % ALIGN == 0)
        };
        if n != self.len() || !sharding.buckets.iter().all(fits) {
            let expected = format!("buckets of {} elements, cut at multiples of {ALIGN}", self.len());
            return Err(Error::Shape { op: "sharded", arg: "buckets", expected, found: vec![n] });
        }
        let own_len = sharding.own_len().max(ALIGN);
        let kept = |kept, whole: &Persistent| match kept {
            Placement::Replicated => whole.clone(),
            Placement::Sharded if whole.is_required() => Persistent::required(whole.name(), DType::F32, own_len),
            Placement::Sharded => Persistent::new(whole.name(), DType::F32, own_len),
        };
        let (values, grads) = (kept(sharding.values, &self.values), kept(sharding.gradients, &self.grads));
        Ok(Self { values, grads, sharding: Some(sharding), replicas: Some(replicas), newest: Newest::default(), ..self })
    }

    /// How the replicas that these parameters are sharded across exchange values.
    pub(crate) fn replicas(&self) -> Option<&Arc<dyn AllGather>> {
        self.replicas.as_ref()
    }

    /// How they are sharded across replicas, if they are.
    pub fn sharding(&self) -> Option<&Sharding> {
        self.sharding.as_ref()
    }

    /// The elements that an optimizer updates, with one kernel for each piece: all elements, or the replica's own.
    pub fn pieces(&self) -> Vec<Piece> {
        let all = 0..self.len();
        let whole = || vec![Piece { values: all.clone(), grads: all.clone(), state: all.clone(), elements: vec![all.clone()] }];
        self.sharding.as_ref().map_or_else(whole, Sharding::pieces)
    }

    /// Elements of an optimizer's state buffer: as many as it updates, and at least 64.
    pub fn state_len(&self) -> usize {
        self.sharding.as_ref().map_or(self.len(), |sharding| sharding.own_len().max(ALIGN))
    }

    /// The part of an optimizer's state that this replica keeps, given all of it in the flat layout.
    ///
    /// # Panics
    /// If there are fewer elements than parameters have.
    pub fn state_of(&self, flat: &[f32]) -> Vec<f32> {
        let Some(sharding) = &self.sharding else { return flat.to_vec() };
        let mut own: Vec<f32> = sharding.buckets.iter().flat_map(|bucket| &flat[bucket.own.clone()]).copied().collect();
        own.resize(self.state_len(), 0.0);
        own
    }

    /// The part of all values that [`values`](Self::values) holds on this replica.
    ///
    /// # Panics
    /// If there are fewer elements than parameters have.
    pub fn values_of(&self, flat: &[f32]) -> Vec<f32> {
        match &self.sharding {
            Some(Sharding { values: Placement::Sharded, .. }) => self.state_of(flat),
            _ => flat.to_vec(),
        }
    }

    /// Returns an error for operations that need all parameters, if these are sharded.
    pub(crate) fn check_whole(&self, op: &'static str) -> Result<(), Error> {
        if self.sharding.is_none() {
            return Ok(());
        }
        let found = "parameters that are sharded across replicas".to_owned();
        Err(Error::Refused { op, found, expected: "parameters that each replica keeps whole" })
    }

    /// Checks that an optimizer's state, with this `origin`, was made for these parameters.
    pub(crate) fn check_state(&self, op: &'static str, origin: Origin, state: &Persistent) -> Result<(), Error> {
        self.origin.check(op, origin)?;
        if state.len() == self.state_len() || self.sharded_state_len == Some(state.len()) {
            return Ok(());
        }
        let expected = format!("{} elements; make the optimizer for these parameters, after they are sharded", self.state_len());
        Err(Error::Shape { op, arg: "state", expected, found: vec![state.len()] })
    }

    /// An optimizer's state buffer in a graph. For parameters that are [unsharded](Self::unsharded), a whole buffer takes the
    /// place of a shard.
    pub fn state_in(&self, graph: &Graph, state: &Persistent) -> Slice {
        if state.len() == self.state_len() {
            return graph.buffer(state);
        }
        graph.buffer(&Persistent::new(state.name(), DType::F32, self.state_len()))
    }

    /// The same parameters, not sharded, with separate memory for values and gradients, such as to record what a step computes on
    /// any number of replicas. Optimizers for the shards can be recorded, too, if they bind their state by
    /// [`state_in`](Self::state_in).
    pub fn unsharded(&self) -> Self {
        let values = Persistent::required(self.values.name(), DType::F32, self.len);
        let grads = Persistent::new(self.grads.name(), DType::F32, self.len);
        let sharded_state_len = self.sharding.as_ref().map(|_| self.state_len()).or(self.sharded_state_len);
        Self { values, grads, sharding: None, replicas: None, sharded_state_len, newest: Newest::default(), ..self.clone() }
    }
}
