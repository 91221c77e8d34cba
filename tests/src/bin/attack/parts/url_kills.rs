//! The same kills of ranks whose rows come from a server, each rank reading only its own: none is lost, and none is used twice.

use std::fs;

use anyhow::{Context, Result};
use brisk_table::{ColumnOptions, CsvOptions, LabelKind, import};

use super::rank_kills::{RankKills, has_tool};
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::server::Server;
use crate::training::{Training, csv};

pub(crate) const PART: Part = Part { name: PartName::UrlKills, weight: 0.5, prepare };

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("url-kills-shared")?;
    if !has_tool(attack, &dir, "mpirun") {
        return Ok(Prepared::NotPossible("there is no mpirun".to_owned()));
    }
    let server = Server::start();
    let mut rng = fastrand::Rng::with_seed(attack.seed());
    let columns = ColumnOptions { label_kind: LabelKind::Binary, ..ColumnOptions::default() };
    let options = CsvOptions { columns, ..CsvOptions::default() };
    let mut put = |name: &str, n_rows| {
        let (source, table) = (dir.join(name).with_extension("csv"), dir.join(name));
        fs::write(&source, csv(&mut rng, n_rows, 6)).context("cannot write rows")?;
        import(&source, &table, &options)?;
        let path = format!("/{name}");
        server.put(&path, fs::read(&table).with_context(|| table.display().to_string())?);
        anyhow::Ok(server.url(&path).into())
    };
    let rows = [put("train.safetensors", 1200)?, put("test.safetensors", 200)?];
    let training = Training::of_rows(attack, &dir, rows, 8, &["--stream", "16", "--cache", "cache"])?;
    match RankKills::of(training, attack, &dir)? {
        Ok(kills) => Prepared::ready(UrlKills { _server: server, kills }),
        Err(why) => Ok(Prepared::NotPossible(why)),
    }
}

struct UrlKills {
    _server: Server,
    kills: RankKills,
}

impl Cases for UrlKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        self.kills.run(case)
    }
}
