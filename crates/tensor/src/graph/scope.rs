use std::panic::Location;

use crate::graph::Graph;
use crate::place::OpenScope;

/// An open [scope](Graph::enter) of a graph, which closes when this is dropped.
#[derive(Debug)]
#[must_use = "the scope closes when this is dropped"]
pub struct Scope {
    graph: Graph,
    opened: Opened,
}

#[derive(Debug)]
enum Opened {
    Name,
    Caller { before: Option<&'static Location<'static>> },
}

impl Graph {
    /// Calls `record` within a scope `name`, which errors then mention. Scopes nest: `attention` within `encoder` is
    /// `encoder.attention`.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Graph, Transpose};
    ///
    /// let graph = Graph::inference("scores");
    /// let x = graph.constant("x", &[1.0; 6], &[2, 3]);
    /// graph.scope("head", || x.matmul(&x, Transpose::None));
    /// let error = graph.check().expect_err("the shapes do not match");
    /// assert_eq!(error.place().expect("the error has one").scope(), "head");
    /// ```
    pub fn scope<T>(&self, name: &str, record: impl FnOnce() -> T) -> T {
        let _scope = self.enter(name);
        record()
    }

    /// Opens a scope that closes when the result is dropped; [`scope`](Self::scope) without a closure.
    ///
    /// A name that starts with the names of the open scopes counts as absolute, as the names of parameters are: within `encoder`,
    /// `encoder.attention` opens `encoder.attention`.
    pub fn enter(&self, name: &str) -> Scope {
        self.open(OpenScope { name: name.to_owned(), made_at: None })
    }

    /// [`enter`](Self::enter) for a layer. Errors then also mention `made_at`, the line where the layer was made, since a call
    /// through `dyn` does not report the caller's line.
    pub fn enter_layer(&self, name: &str, made_at: &'static Location<'static>) -> Scope {
        self.open(OpenScope { name: name.to_owned(), made_at: Some(made_at) })
    }

    fn open(&self, scope: OpenScope) -> Scope {
        self.inner_mut().scopes.push(scope);
        Scope { graph: self.clone(), opened: Opened::Name }
    }

    /// Until the result is dropped, errors also mention the line that called the function that calls this one; that function must
    /// be `#[track_caller]`. For models that call their layers through `dyn` or in a closure, where `#[track_caller]` ends. Of
    /// nested calls only the outermost counts.
    #[track_caller]
    pub fn enter_from_caller(&self) -> Scope {
        self.enter_from(Location::caller())
    }

    /// [`enter_from_caller`](Self::enter_from_caller) for another line, such as the one that made an optimizer.
    pub fn enter_from(&self, caller: &'static Location<'static>) -> Scope {
        let mut inner = self.inner_mut();
        let before = inner.outer;
        inner.outer = before.or(Some(caller));
        drop(inner);
        Scope { graph: self.clone(), opened: Opened::Caller { before } }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let mut inner = self.graph.inner_mut();
        match self.opened {
            Opened::Name => drop(inner.scopes.pop()),
            Opened::Caller { before } => inner.outer = before,
        }
    }
}
