//! The modules of each crate, and which of them use each other: by `use`, and by paths in the code. If a module only
//! re-exports a name (`pub use`), the name counts for the module that defines it. Tests do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::repository::words;

type Path = Vec<String>;

/// The modules of one crate, by their paths.
pub struct Modules(BTreeMap<Path, Module>);

struct Module {
    file: String,
    code: String,
    /// The names that the module declares.
    items: HashSet<String>,
    /// The names that the module imports or re-exports, each with its path and whether it is re-exported.
    imports: HashMap<String, (Path, bool)>,
    /// The modules that everything is imported from (`use module::*`).
    globs: Vec<Path>,
    /// The submodules that exist only for tests.
    test_modules: Vec<String>,
}

/// Finds the libraries and programs among the sources. Each has a `lib.rs` or `main.rs`, and consists of the files
/// below it.
pub fn read_crates(sources: Vec<(String, String)>) -> Vec<Modules> {
    let roots = sources.iter().filter_map(|(file, _)| {
        let (folder, name) = file.rsplit_once('/')?;
        ["lib.rs", "main.rs"]
            .contains(&name)
            .then(|| folder.to_owned())
    });
    let roots: HashSet<String> = roots.collect();
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for (file, text) in sources {
        let mut folders = file.rmatch_indices('/').map(|(end, _)| &file[..end]);
        let Some(folder) = folders.find(|folder| roots.contains(*folder)) else {
            continue;
        };
        let path = module_path(&file[folder.len() + 1..]);
        if ["bin", "tests"]
            .iter()
            .any(|part| path.iter().any(|name| name == part))
        {
            continue;
        }
        let modules = crates.entry(folder.to_owned());
        let modules = modules.or_insert_with(|| Modules(BTreeMap::new()));
        modules.0.insert(path, Module::parse_module(file, &text));
    }
    let mut crates: Vec<Modules> = crates.into_values().collect();
    crates.iter_mut().for_each(Modules::leave_out_tests);
    crates
}

fn module_path(file: &str) -> Path {
    let names = file.trim_end_matches(".rs").split('/');
    let names = names.filter(|name| !["lib", "main", "mod"].contains(name));
    names.map(str::to_owned).collect()
}

impl Module {
    fn parse_module(file: String, text: &str) -> Module {
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let lines = code.unwrap_or_default().lines();
        let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
        let code = lines.collect::<Vec<_>>().join("\n");
        let mut module = Module {
            file,
            code: String::new(),
            items: HashSet::new(),
            imports: HashMap::new(),
            globs: Vec::new(),
            test_modules: test_modules(text),
        };
        let mut rest = code.as_str();
        while let Some((before, statement, after)) = next_use(rest) {
            module.code.push_str(before);
            if !before.trim_end().ends_with("#[cfg(test)]") {
                module.add_use(statement);
            }
            rest = after;
        }
        module.code.push_str(rest);
        for line in module.code.lines().filter(|line| !line.starts_with(' ')) {
            module.items.extend(declared_item(line).map(str::to_owned));
        }
        module
    }

    fn add_use(&mut self, statement: &str) {
        let is_passed_on = statement.starts_with("pub");
        let tree = statement.split_once("use ").map_or("", |(_, tree)| tree);
        let mut paths = Vec::new();
        flatten(&[], tree, &mut paths);
        for (mut path, alias) in paths {
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            match path.last().cloned() {
                Some(last) if last == "*" => {
                    path.pop();
                    self.globs.push(path);
                }
                Some(last) => {
                    let name = alias.unwrap_or(last);
                    self.imports.insert(name, (path, is_passed_on));
                }
                None => {}
            }
        }
    }
}

/// The submodules that a source declares for tests only.
fn test_modules(text: &str) -> Vec<String> {
    let declared = text.split("#[cfg(test)]\n").skip(1);
    let declarations = declared.filter_map(|rest| rest.lines().next()?.strip_suffix(';'));
    let names = declarations.filter_map(|line| line.split_once("mod ").map(|(_, name)| name));
    names.map(str::to_owned).collect()
}

/// Splits a text at its next `use` statement: the text before it, the statement without its semicolon, and the text
/// after it.
fn next_use(text: &str) -> Option<(&str, &str, &str)> {
    let is_use = |line: &str| {
        let line = match line
            .strip_prefix("pub(")
            .and_then(|rest| rest.split_once(") "))
        {
            Some((_, rest)) => rest,
            None => line.strip_prefix("pub ").unwrap_or(line),
        };
        line.starts_with("use ")
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_use(line) {
            let end = at + text[at..].find(';')?;
            return Some((&text[..at], &text[at..end], &text[end + 1..]));
        }
        at += line.len();
    }
    None
}

/// Adds the paths of a `use` tree such as `a::{b, c::{self, d as e}}`, each with its alias.
fn flatten(prefix: &[String], tree: &str, paths: &mut Vec<(Path, Option<String>)>) {
    let tree = tree.trim();
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, group.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let (head, alias) = match head.split_once(" as ") {
        Some((head, alias)) => (head, Some(alias.trim().to_owned())),
        None => (head, None),
    };
    let names = head.split("::").map(str::trim);
    let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
    let path: Path = prefix.iter().cloned().chain(names).collect();
    let Some(group) = group else {
        if path.len() > prefix.len() {
            paths.push((path, alias));
        }
        return;
    };
    let (mut depth, mut from) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                flatten(&path, &group[from..at], paths);
                from = at + 1;
            }
            _ => {}
        }
    }
    flatten(&path, &group[from..], paths);
}

fn declared_item(line: &str) -> Option<&str> {
    const KEYWORDS: &[&str] = &[
        "struct",
        "enum",
        "union",
        "trait",
        "fn",
        "const",
        "static",
        "type",
        "macro_rules",
    ];
    let mut words = words(line)
        .skip_while(|word| !KEYWORDS.contains(word))
        .peekable();
    words.next()?;
    words.find(|word| !KEYWORDS.contains(word) && *word != "mut")
}

impl Modules {
    fn leave_out_tests(&mut self) {
        let tests = self.0.iter().flat_map(|(path, module)| {
            let names = module.test_modules.iter();
            names.map(|name| [&path[..], std::slice::from_ref(name)].concat())
        });
        let tests: Vec<Path> = tests.collect();
        self.0
            .retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    }

    /// For each file, the other files that it uses.
    pub fn uses(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let files = self.0.iter().map(|(path, module)| {
            let used = self.used_by(path, module).into_iter();
            let used = used.filter(|used| used != path);
            let used = used.map(|used| self.0[&used].file.as_str());
            (module.file.as_str(), used.collect())
        });
        files.collect()
    }

    fn used_by(&self, path: &Path, module: &Module) -> HashSet<Path> {
        let mut used = HashSet::new();
        let own: HashSet<&str> = words(&module.code).collect();
        for (name, (import, is_passed_on)) in &module.imports {
            let Some(target) = self.absolute_path(path, import) else {
                continue;
            };
            // An import of a module alone does not count. The paths through it that the code uses are resolved below.
            let is_used = !is_passed_on || own.contains(name.as_str());
            if is_used && !self.0.contains_key(&target) {
                used.extend(self.find(&target, 0));
            }
        }
        let globs = module.globs.iter();
        used.extend(globs.filter_map(|glob| self.find(&self.absolute_path(path, glob)?, 0)));
        for named in named_paths(&module.code) {
            let imported = module.imports.get(&named[0]);
            let is_imported = imported.is_some();
            let path_named = match imported {
                Some((import, _)) => [&import[..], &named[1..]].concat(),
                None => named,
            };
            if let Some(target) = self.absolute_path(path, &path_named)
                && (is_imported || !self.0.contains_key(&target))
            {
                used.extend(self.find(&target, 0));
            }
        }
        used
    }

    /// The absolute path within the crate; `None` if the path leads into another crate.
    fn absolute_path(&self, module: &Path, path: &[String]) -> Option<Path> {
        let mut base = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                base.push(child.to_owned());
                let is_child = self.0.contains_key(&base);
                base.pop();
                if !is_child {
                    return None;
                }
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The module that defines the item at a path.
    fn find(&self, path: &[String], depth: usize) -> Option<Path> {
        let deepest = (0..=path.len())
            .rev()
            .find(|end| self.0.contains_key(&path[..*end]))?;
        let (at, rest) = path.split_at(deepest);
        let module = &self.0[at];
        let Some(name) = rest.first() else {
            return Some(at.to_vec());
        };
        if module.items.contains(name) || depth > 8 {
            return Some(at.to_vec());
        }
        if let Some((import, _)) = module.imports.get(name) {
            let target = self.absolute_path(&at.to_vec(), import)?;
            return self.find(&[&target[..], &rest[1..]].concat(), depth + 1);
        }
        let mut globs = module.globs.iter().filter_map(|glob| {
            let target = self.absolute_path(&at.to_vec(), glob)?;
            let found = self.find(&[&target[..], rest].concat(), depth + 1)?;
            self.0[&found].items.contains(name).then_some(found)
        });
        Some(globs.next().unwrap_or_else(|| at.to_vec()))
    }
}

/// All paths with at least two names in a piece of code.
fn named_paths(code: &str) -> Vec<Path> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let paths = code
        .split(|c| !is_part(c))
        .map(|path| path.trim_matches(':'));
    let paths = paths.filter(|path| path.contains("::"));
    paths
        .map(|path| path.split("::").map(str::to_owned).collect())
        .collect()
}
