//! The space that shadow repositories need: measures it, and removes old records (files.md §6).

use crate::git::Shadow;
use crate::journal::{self, KEPT, safety_ref};
use crate::snapshot::{free_space, now};
use crate::state::{Lock, Root};
use anyhow::{Context, bail};
use std::fs;
use std::path::Path;

/// The most bytes of a root's shadow repository.
pub const BUDGET: u64 = 2 << 30;

/// The fewest objects in separate files that are packed while there is nothing else to do.
pub const LOOSE: usize = 1_000;

/// The size and the number of records of a shadow repository.
#[derive(Debug, PartialEq, Eq)]
pub struct Use {
    pub bytes: u64,
    pub records: usize,
    pub restores: usize,
}

pub fn of(root: &Root, lock: &Lock) -> anyhow::Result<Use> {
    let shadow = root.shadow(lock)?;
    Ok(Use {
        bytes: size(&root.repository())?,
        records: refs(&shadow, "refs/tl/")?.len(),
        restores: refs(&shadow, "refs/tl-safety/")?.len(),
    })
}

fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0_u64;
    for file in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let file = file?;
        let metadata = file.metadata()?;
        let of_file = match metadata.is_dir() {
            true => size(&file.path())?,
            false => metadata.len(),
        };
        bytes = bytes.saturating_add(of_file);
    }
    Ok(bytes)
}

/// The refs that begin with a prefix, the oldest first.
fn refs(shadow: &Shadow, prefix: &str) -> anyhow::Result<Vec<String>> {
    let names = shadow.run(
        [
            "for-each-ref",
            "--sort=committerdate",
            "--format=%(refname)",
            prefix,
        ],
        None,
    )?;
    let names = String::from_utf8(names.out)?;
    Ok(names.lines().map(str::to_owned).collect())
}

fn delete(shadow: &Shadow, names: &[String]) -> anyhow::Result<()> {
    let mut commands = Vec::new();
    for name in names {
        commands.extend(format!("delete {name}\n").bytes());
    }
    shadow.run(["update-ref", "--stdin"], Some(commands))?;
    Ok(())
}

/// Removes restores that are too old, and then the oldest records until the repository fits the budget. Returns the
/// number of removed records.
pub fn prune(root: &Root, lock: &Lock, budget: u64) -> anyhow::Result<usize> {
    let shadow = root.shadow(lock)?;
    drop_old_restores(root, &shadow)?;
    let mut dropped = 0;
    pack(root, &shadow)?;
    while size(&root.repository())? > budget {
        let records = refs(&shadow, "refs/tl/")?;
        let oldest: Vec<String> = match records.len() {
            0 => break,
            all => records.into_iter().take(all.div_ceil(4)).collect(),
        };
        delete(&shadow, &oldest)?;
        dropped += oldest.len();
        pack(root, &shadow)?;
    }
    Ok(dropped)
}

/// Packs the objects of a shadow repository if `least` of them or more are in separate files. Returns whether it has packed
/// them.
pub fn pack_loose(root: &Root, lock: &Lock, least: usize) -> anyhow::Result<bool> {
    let shadow = root.shadow(lock)?;
    let counted = String::from_utf8(shadow.run(["count-objects"], None)?.out)?;
    let loose = counted.split(' ').next().unwrap_or_default();
    let loose: usize = loose.parse().context("read the number of objects")?;
    if loose < least {
        return Ok(false);
    }
    pack(root, &shadow)?;
    Ok(true)
}

fn drop_old_restores(root: &Root, shadow: &Shadow) -> anyhow::Result<()> {
    let now = now();
    for journal in journal::all(root)? {
        if now.saturating_sub(journal.time) > KEPT {
            delete(shadow, &[safety_ref(&journal.id)])?;
            fs::remove_file(journal::path(root, &journal.id))?;
        }
    }
    Ok(())
}

/// Packs the objects that refs and the index reach, and removes all other objects.
fn pack(root: &Root, shadow: &Shadow) -> anyhow::Result<()> {
    let bytes = size(&root.repository())?;
    let free = free_space(&root.repository())?;
    if free < bytes.saturating_mul(2) {
        bail!(
            "only {} MB are free; packing needs {} MB",
            free >> 20,
            bytes.saturating_mul(2) >> 20
        );
    }
    shadow.run(["repack", "-a", "-d", "-q"], None)?;
    shadow.run(["prune", "--expire=now"], None)?;
    Ok(())
}
