# Read a release of holdfast with base R: figures with intervals, what is promised, what every column is.
#
#   source("holdfast.R")
#   release <- holdfast_read("out")
#   release                       what it is and what it promises
#   release$tables$table          a data frame: labels as texts, value, low, high
#   holdfast_promise(release)     every statement that holds, best first
#   holdfast_rows(release, level = "zone", borough = "North")
#   holdfast_estimate(release, list(zone = c("N1", "S2")), 0.95)     and holdfast_ratio, holdfast_difference
#
# Nothing beyond base R is needed. The certificate is JSON; a small reader of it stands at the end of this file.

holdfast_read <- function(folder) {
  path <- file.path(folder, "certificate.json")
  if (!file.exists(path)) stop(folder, " holds no certificate.json: name the folder of a release", call. = FALSE)
  certificate <- holdfast_json(path)
  if (!identical(certificate$schema, "holdfast-certificate-1") && !grepl("^holdfast-certificate-", certificate$schema))
    stop(path, " is not a certificate of holdfast", call. = FALSE)
  tables <- list()
  for (table in certificate$tables) {
    names_of <- unlist(table$columns)
    file <- file.path(folder, table$csv)
    files <- if (dir.exists(file)) sort(list.files(file, full.names = TRUE)) else file
    found <- do.call(rbind, lapply(files, utils::read.csv,
      colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8"
    ))
    if (dir.exists(file)) {
      found <- found[order(as.numeric(found$row)), names(found) != "row"]
      rownames(found) <- NULL
    }
    labels <- paste0(unlist(table$labels), "_label", recycle0 = TRUE)
    for (name in setdiff(names(found), c(names_of, labels))) found[[name]] <- as.numeric(found[[name]])
    if (nrow(found) != table$rows)
      stop(table$csv, " has ", nrow(found), " rows where ", table$rows, " are certified: run holdfast verify", call. = FALSE)
    if (!is.null(table$sum_of)) {  # of several figures of a table its own: value, low, high
      own <- paste0(table$sum_of$column, c("", "_low", "_high"))
      found <- stats::setNames(found[c(names_of, own, labels)], c(names_of, "value", "low", "high", labels))
    }
    attr(found, "confidence") <- table$interval$confidence
    attr(found, "intervals") <- table$interval$sentence
    tables[[table$name]] <- found
  }
  structure(
    list(title = certificate$title, tables = tables, certificate = certificate, folder = folder, held = new.env()),
    class = "holdfast_release"
  )
}

holdfast_promise <- function(release) {
  rows <- lapply(release$certificate$statements, function(each) {
    data.frame(
      epsilon = .number(each$epsilon), delta = .number(each$delta), rho = .number(each$rho), mu = .number(each$mu),
      neighbours = each$neighbours$kind, records = each$neighbours$records, scope = each$scope,
      status = each$status, because = each$because, stringsAsFactors = FALSE
    )
  })
  do.call(rbind, rows)
}

holdfast_unprotected <- function(release) unlist(release$certificate$unprotected)

holdfast_rows <- function(release, ..., table = 1) {
  found <- release$tables[[.number_of(release, table)]]
  wanted <- list(...)
  for (name in names(wanted)) {
    if (!name %in% names(found)) stop("there is no column ", name, call. = FALSE)
    strange <- setdiff(wanted[[name]], release$tables[[.number_of(release, table)]][[name]])
    if (length(strange)) stop(name, " has no value ", strange[1], call. = FALSE)
    found <- found[found[[name]] %in% wanted[[name]], , drop = FALSE]
  }
  # Rows of a level and sums of them must not come together by mistake: whoever adds them up counts everyone twice.
  levels <- unique(found$level)
  if (length(levels) > 1 && !"level" %in% names(wanted))
    stop("rows of several levels match, and each counts everyone again: name one, level = ",
         paste0('"', levels, '"', collapse = " or level = "), call. = FALSE)
  for (name in setdiff(unlist(release$certificate$tables[[.number_of(release, table)]]$columns), c("level", names(wanted)))) {
    for (empty in split(is.na(found[[name]]), found$level)) if (any(empty) && !all(empty))
      stop("rows for each ", name, " match, and their totals too: name one, ", name, " = \"", found[[name]][!is.na(found[[name]])][1],
           "\", or ", name, " = NA for the totals", call. = FALSE)
  }
  found
}

print.holdfast_release <- function(x, ...) {
  cat("Release:", x$title, "\n")
  promise <- holdfast_promise(x)[1, ]
  said <- c(
    if (!is.na(promise$epsilon)) paste0("epsilon = ", promise$epsilon),
    if (!is.na(promise$epsilon) && promise$delta > 0) paste0("delta = ", promise$delta),
    if (!is.na(promise$rho)) paste0("rho = ", promise$rho), if (!is.na(promise$mu)) paste0("mu = ", promise$mu)
  )
  cat("Promise: ", paste(said, collapse = ", "), ", for ", promise$neighbours, " of ", promise$records,
      if (promise$records > 1) " records, " else " record, ",
      "scope ", promise$scope, ", ", promise$status, "\n", sep = "")
  for (words in holdfast_unprotected(x)) cat("Not protected:", words, "\n")
  for (name in names(x$tables)) cat("Table ", name, ": ", nrow(x$tables[[name]]), " figures\n", sep = "")
  invisible(x)
}

.number <- function(value) {
  if (is.null(value)) return(NA_real_)
  if (is.character(value)) return(if (value == "inf") Inf else as.numeric(value))
  as.numeric(value)
}

# --- sums, ratios and differences with intervals: what report.html holds of the law of the errors, and its steps -----
#
#   holdfast_estimate(release, list(zone = c("A", "B")), 0.95)
#   holdfast_ratio(release, list(zone = "A"), list(borough = "North"))
#   holdfast_difference(release, list(zone = "A"), list(zone = "B"))       both sums of one table
#
# Each gives value, low, high, standard_error; the numbers are those of hf.load(...).table().estimate(...) in Python.

holdfast_estimate <- function(release, where, confidence = 0.95, table = 1) {
  held <- .held(release, table)
  sum <- .known(held, .weights(held, where))
  .answer(sum$value, sum$error, .interval(sum, confidence), held$unit)
}

holdfast_difference <- function(release, where, other, confidence = 0.95, table = 1) {
  held <- .held(release, table)
  sum <- .known(held, .weights(held, where) - .weights(held, other))
  .answer(sum$value, sum$error, .interval(sum, confidence), held$unit)
}

holdfast_ratio <- function(release, where, to, confidence = 0.95, table = 1) {
  held <- .held(release, table)
  above <- .known(held, .weights(held, where))
  below <- .known(held, .weights(held, to))
  tail <- (1 - confidence) / 2
  error <- NA_real_
  if (is.null(above$noise) || above$told || below$told) {
    ends <- .quotient(.interval(above, confidence), .interval(below, confidence))
  }
  if (!is.null(above$noise)) {
    a <- above$centre
    b <- below$centre
    both <- (held$noise(above$weights + below$weights)$error^2 - above$error^2 - below$error^2) / 2
    most <- above$error^2 + (a / b)^2 * below$error^2
    square <- most - 2 * a / b * both
    if (b != 0) error <- if (square > 1e-12 * most) sqrt(square) / abs(b) else 0
    if (!above$told && !below$told && b != 0 && all(above$weights * b == below$weights * a)) ends <- c(a / b, a / b)
    else if (!above$told && !below$told) {
      ends <- if (held$law$kind == "normal") .fieller(a, b, above$error^2, both, below$error^2, stats::qnorm(1 - tail))
      else if (!is.null(above$noise$errors)) .studied(above, below, tail)
      else if (held$law$kind == "moved") .by_law(held, above, below, tail)
      else .quotient(a + c(-1, 1) * .far(above$noise, tail / 2), b + c(-1, 1) * .far(below$noise, tail / 2))
      certain <- .quotient(above$certain, below$certain)
      ends <- if (ends[2] < certain[1] || certain[2] < ends[1]) certain else .within(ends, certain)
    }
  }
  if (above$certain[1] >= 0 && .certain(held, below$weights - above$weights)[1] >= 0) ends <- .within(ends, c(0, 1))
  .answer(if (below$value == 0) NaN else above$value / below$value, error, ends)
}

.answer <- function(value, error, ends, unit = 1) {
  list(value = value * unit, low = ends[1] * unit, high = ends[2] * unit, standard_error = error * unit)
}
.within <- function(ends, limit) pmin(pmax(ends, limit[1]), limit[2])

.quotient <- function(above, below) {
  if (below[1] < 0 || below[2] <= 0) return(c(-Inf, Inf))
  if (below[1] == 0) return(c(if (above[1] >= 0) above[1] / below[2] else -Inf, Inf))
  c(above[1] / below[if (above[1] >= 0) 2 else 1], above[2] / below[if (above[2] < 0) 2 else 1])
}

.fieller <- function(a, b, first, both, second, factor) {
  square <- b^2 - factor^2 * second
  middle <- a * b - factor^2 * both
  if (square <= 0) return(c(-Inf, Inf))
  (middle + c(-1, 1) * sqrt(max(middle^2 - square * (a^2 - factor^2 * first), 0))) / square
}

.by_law <- function(held, above, below, tail) {
  sizes <- c(above$error, below$error)
  bare <- list(.bare(held$law, above$weights) / sizes[1], .bare(held$law, below$weights) / sizes[2])
  values <- c(above$centre, below$centre) / sizes
  near <- 1e-12 * sum(abs(values))
  turned <- function(x, y) .independent(held$law, x * bare[[1]] + y * bare[[2]])
  apart <- function(angle) abs(values[1] * cos(angle) - values[2] * sin(angle))
  reach <- function(sum, some) if (is.null(found <- .wide(sum, some))) stop("so rare an error cannot be computed here", call. = FALSE) else found
  if (abs(values[2]) <= reach(turned(0, 1), tail) + near) return(c(-Inf, Inf))
  .ended(values, sizes, function(first, far) {
    centre <- (first + far) / 2
    across <- turned(sin(centre), cos(centre))
    here <- turned(cos(centre), -sin(centre))
    away <- min(apart(first), apart(far)) - near - sin(abs(far - first) / 2) * .proved(across, 1e-3 * tail)
    away > 0 && (away > .proved(here, 0.999 * tail) || away > reach(here, 0.999 * tail))
  })
}

.studied <- function(above, below, tail) {
  drawn <- list(above$noise$errors, below$noise$errors)
  sizes <- vapply(drawn, function(each) sqrt(mean((each - mean(each))^2)), 0)
  sizes[sizes == 0] <- 1
  drawn <- Map("/", drawn, sizes)
  values <- c(above$centre, below$centre) / sizes
  near <- 1e-12 * sum(abs(values))
  apart <- function(angle) abs(values[1] * cos(angle) - values[2] * sin(angle))
  turned <- function(angle) abs(drawn[[1]] * cos(angle) - drawn[[2]] * sin(angle))
  if (abs(values[2]) <= .reach(abs(drawn[[2]]), tail) + near) return(c(-Inf, Inf))
  .ended(values, sizes, function(first, far) min(apart(first), apart(far)) > .reach(pmax(turned(first), turned(far)), tail) + near)
}

# The ends of a ratio: on the way from it to either side, what is short and not left out.
.ended <- function(values, sizes, left) {
  middle <- atan(values[1] / values[2])
  end <- function(last) {
    ways <- list(c(middle, last))
    while (length(ways)) {
      first <- ways[[length(ways)]][1]
      far <- ways[[length(ways)]][2]
      ways[[length(ways)]] <- NULL
      if (left(first, far)) next
      centre <- (first + far) / 2
      if (abs(far - first) <= abs(far - middle) / 1000.5 || abs(far - middle) <= 1e-12) return(tan(far) * sizes[1] / sizes[2])
      ways <- c(ways, list(c(first, centre), c(centre, far)))
    }
    stop("the way at the ratio itself is never left out")
  }
  c(end(-pi / 2), end(pi / 2))
}

.number_of <- function(release, table) {
  number <- if (is.character(table)) match(table, names(release$tables)) else table
  if (is.na(number) || number > length(release$tables)) stop("there is no table ", table, call. = FALSE)
  number
}

# What report.html holds of a table, made ready once for every release that was read.
.held <- function(release, table) {
  number <- .number_of(release, table)
  if (is.null(release$held[[paste0("t", number)]])) {
    text <- paste(readLines(file.path(release$folder, "report.html"), encoding = "UTF-8", warn = FALSE), collapse = "\n")
    start <- regexpr('id="data">', text, fixed = TRUE) + 10
    rest <- substring(text, start)
    told <- .json(substring(rest, 1, regexpr("</script>", rest, fixed = TRUE) - 1))[[number]]
    assign(paste0("t", number), .ready(told), envir = release$held)
  }
  release$held[[paste0("t", number)]]
}

.ready <- function(told) {
  if (!told$held) stop("report.html does not hold the rows of ", told$name, ": ask Python", call. = FALSE)
  if (!told$known %in% c("law", "bounds")) stop("the errors of ", told$name, " are known from simulation alone: ask Python", call. = FALSE)
  held <- told
  held$columns <- unlist(told$columns)
  held$places <- unlist(told$places)
  held$names <- lapply(told$names, function(each) unlist(each$texts)[match(.unrun(each$codes), seq_along(each$texts) - 1)])
  for (name in c("value", "low", "high", "centre", "least", "most")) held[[name]] <- .numbers(told[[name]])
  held["sums"] <- list(.sparse(told$sums))
  if (!is.null(told$tree)) held$tree <- list(parents = .unrun(told$tree$parents) + 1, by = told$tree$by)
  if (!is.null(told$law$own)) {
    law <- told$law
    law$variance <- vapply(law$variance, .number, 0)
    held$law <- law
    held$noise <- .studied_noise(law)
  } else if (!is.null(told$law)) {
    law <- told$law
    for (name in c("parameter", "variance", "spreads")) law[[name]] <- vapply(law[[name]], .number, 0)
    law$which <- .unrun(law$which) + 1
    law["rows"] <- list(.sparse(told$law$rows))
    law["told"] <- list(.sparse(told$law$told))
    held$law <- law
    tree <- if (law$kind == "given") .tree(law)
    held$noise <- function(weights) if (is.null(tree)) .independent(law, .bare(law, weights)) else tree(weights)
  }
  held
}

.unrun <- function(runs) {
  runs <- as.numeric(unlist(runs))
  cumsum(rep(runs[c(TRUE, FALSE)], runs[c(FALSE, TRUE)]))
}

.numbers <- function(told) {
  if (is.character(told)) return(.doubles(told))
  if (!is.null(names(told)) && "all" %in% names(told)) return(rep(as.numeric(sub("Infinity", "Inf", told$all)), told$n))
  if (!is.null(names(told))) return(.unrun(told$runs))
  as.numeric(unlist(told))
}

# Some figures of which all are sums: their covariance, and simulated errors where the law has no formula.
.studied_noise <- function(law) {
  own <- unlist(law$own) + 1
  others <- unlist(law$others) + 1
  rest <- matrix(.numbers(law$rest), length(own), byrow = TRUE)
  covariance <- matrix(.numbers(law$covariance), length(own))
  drawn <- if (law$kind == "study") {
    size <- as.numeric(substring(law$bytes, 3))
    bytes <- .bytes(law$drawn)
    matrix(readBin(bytes, if (size == 8) "double" else "integer", length(bytes) / size, size = size, endian = "little"), law$size)
  }
  function(weights) {
    few <- weights[own] + if (length(others)) as.vector(rest %*% weights[others]) else 0
    error <- sqrt(max(sum(few * (covariance %*% few)), 0)) + law$rounded * sum(abs(weights))
    if (is.null(drawn)) list(error = error, normal = TRUE) else list(error = error, errors = as.vector(drawn %*% few))
  }
}

.bytes <- function(text) {
  signs <- c(LETTERS, letters, 0:9, "-", "_")
  codes <- match(strsplit(gsub("=", "", text), "")[[1]], signs) - 1
  codes <- matrix(c(codes, rep(0, -length(codes) %% 4)), 4)
  made <- rbind(codes[1, ] * 4 + codes[2, ] %/% 16, (codes[2, ] %% 16) * 16 + codes[3, ] %/% 4, (codes[3, ] %% 4) * 64 + codes[4, ])
  as.raw(made)[seq_len((nchar(gsub("=", "", text)) * 3) %/% 4)]
}

.doubles <- function(text) {
  bytes <- .bytes(text)
  readBin(bytes, "double", length(bytes) / 8, size = 8, endian = "little")
}

.sparse <- function(told) {
  if (is.null(told)) return(NULL)
  sizes <- .unrun(told$sizes)
  list(count = length(sizes), row = rep(seq_along(sizes), sizes), at = .unrun(told$at) + 1, sign = .numbers(told$sign))
}

.weights <- function(held, where) {
  labels <- unlist(held$labels)
  chosen <- rep(TRUE, held$rows)
  for (name in names(where)) {
    if (name == "level" || !name %in% names(held$names)) stop("there is no column ", name, call. = FALSE)
    strange <- setdiff(as.character(where[[name]]), held$names[[name]])
    if (length(strange)) stop(name, " has no value ", strange[1], call. = FALSE)
    chosen <- chosen & !is.na(held$names[[name]]) & held$names[[name]] %in% as.character(where[[name]])
  }
  plain <- vapply(names(where), function(name) if (sub("_label$", "", name) %in% labels) sub("_label$", "", name) else name, "")
  chosen <- chosen & held$names$level == .level(held, plain, where)
  if (held$rows > held$outputs && length(held$places)) {
    categories <- setdiff(held$columns, held$places)
    behind <- seq_len(held$rows) > held$outputs
    chosen <- chosen & behind != any(categories %in% plain)
    for (name in categories) chosen <- chosen & (!behind | is.na(held$names[[name]]))
  }
  if (!any(chosen)) stop("no row has these names together", call. = FALSE)
  as.numeric(chosen)
}

.level <- function(held, named, where) {
  deep <- max(c(0, which(held$places %in% named)))
  wanted <- setdiff(named, c(held$places, if (length(held$linked)) "table"))
  of <- NULL
  if (length(held$linked)) {
    meant <- Filter(function(each) all(wanted %in% unlist(each[[2]])), held$linked)
    if (!is.null(where$table)) of <- where$table
    else if (length(meant) == 1) of <- meant[[1]][[1]] else stop("say which table is meant", call. = FALSE)
  }
  holding <- Filter(function(margin) {
    (is.null(of) || identical(margin$table, of)) && margin$places >= deep && all(wanted %in% unlist(margin$told))
  }, held$margins)
  if (!length(holding)) stop("no level has all of ", paste(named, collapse = ", "), call. = FALSE)
  size <- function(margin) c(margin$places, length(margin$axes))
  smallest <- Filter(function(margin) all(size(margin) == size(holding[[1]])), holding)
  c(Filter(function(margin) all(wanted %in% unlist(margin$axes)), smallest), smallest)[[1]]$level
}

.limits <- function(held, weights) {
  used <- which(weights != 0)
  ends <- cbind(weights[used] * held$least[used], weights[used] * held$most[used])
  c(sum(pmin(ends[, 1], ends[, 2])), sum(pmax(ends[, 1], ends[, 2])))
}

.certain <- function(held, weights) {
  found <- .limits(held, weights)
  if (is.null(held$tree)) return(found)
  parents <- held$tree$parents
  below <- matrix(weights, held$tree$by)
  depth <- rep(0, length(parents))
  here <- parents
  while (any(here > 0)) {
    depth <- depth + (here > 0)
    here <- ifelse(here > 0, parents[pmax(here, 1)], 0)
  }
  for (d in seq_len(max(depth))) below[, depth == d] <- below[, depth == d] + below[, parents[depth == d]]
  below[, unique(parents[parents > 0])] <- 0
  other <- .limits(held, as.numeric(below))
  c(max(found[1], other[1]), min(found[2], other[2]))
}

.known <- function(held, asked) {
  weights <- asked[seq_len(held$outputs)]
  if (!is.null(held$sums)) {
    more <- asked[held$outputs + held$sums$row] * held$sums$sign
    weights <- weights + .added(more, held$sums$at, held$outputs)
  }
  noise <- if (!is.null(held$noise)) held$noise(weights)
  certain <- .certain(held, weights)
  list(held = held, asked = asked, weights = weights, value = sum(asked * held$value), certain = certain, noise = noise,
       centre = sum(weights * held$centre), error = if (is.null(noise)) NA_real_ else noise$error,
       sure = is.null(noise) || certain[1] == certain[2],
       told = is.null(noise) || certain[1] == certain[2] || noise$error <=
         1e-9 * held$law$unit * sqrt(max(held$law$variance, na.rm = TRUE)) * max(abs(weights)))
}

.interval <- function(sum, confidence) {
  if (!(confidence > 0 && confidence < 1)) stop("confidence must lie between 0 and 1", call. = FALSE)
  used <- which(sum$asked != 0)
  if (length(used) == 1 && confidence == sum$held$confidence) {
    return(sort(sum$asked[used] * c(sum$held$low[used], sum$held$high[used])))
  }
  if (sum$sure) return(sum$certain)
  ends <- .within(sum$centre + c(-1, 1) * .far(sum$noise, (1 - confidence) / 2), sum$certain)
  if (any(sum$weights %% 1 != 0)) return(ends)
  inner <- c(ceiling(ends[1] - 1e-6), floor(ends[2] + 1e-6))
  if (inner[1] <= inner[2]) inner else c(floor(ends[1]), ceiling(ends[2]))
}

.added <- function(values, at, count) {
  found <- numeric(count)
  if (length(values)) {
    sums <- rowsum(values, at)
    found[as.integer(rownames(sums))] <- sums[, 1]
  }
  found
}

.bare <- function(law, weights) {
  rows <- law$rows
  for (some in split(seq_along(law$told$at), law$told$row)) { # what is not measured is told by what is
    share <- weights[law$told$at[some[1]]] / law$told$sign[some[1]]
    weights[law$told$at[some]] <- weights[law$told$at[some]] - share * law$told$sign[some]
  }
  if (is.null(rows)) return(weights)
  spread <- law$spreads[law$which]
  across <- function(x) .added(rows$sign * x[rows$at], rows$row, rows$count)
  back <- function(y) .added(rows$sign * y[rows$row], rows$at, length(weights))
  diagonal <- .added(rows$sign^2 * spread[rows$at], rows$row, rows$count)
  found <- numeric(rows$count)
  rest <- across(spread * weights)
  way <- rest / diagonal
  length <- enough <- sum(rest * way)
  for (n in seq_len(4000)) {
    if (length <= 1e-30 * enough) break
    image <- across(spread * back(way))
    size <- length / sum(way * image)
    found <- found + size * way
    rest <- rest - size * image
    following <- sum(rest^2 / diagonal)
    way <- rest / diagonal + following / length * way
    length <- following
  }
  weights - back(found)
}

.wave <- function(law, k, x) {
  size <- law$parameter[k]
  if (!law$gaussian) return(1 / (1 + law$variance[k] * (if (law$integer) 2 * sin(x / 2)^2 else x^2 / 2)))
  if (!law$integer) return(exp(-size * x^2 / 2))
  near <- x - 2 * pi * round(x / (2 * pi))
  total <- function(y) {
    found <- 0 * y
    for (m in -4:4) found <- found + if (size > 0.16) exp(-size * (y + 2 * pi * m)^2 / 2) else exp(-m^2 / (2 * size)) * cos(m * y)
    found
  }
  total(near) / total(0)
}

.tilted <- function(law, k, t) {
  if (law$gaussian) return(law$parameter[k] * t^2 / 2)
  rest <- 1 - law$variance[k] * (if (law$integer) cosh(pmin(abs(t), 700)) - 1 else t^2 / 2)
  ifelse(rest > 0, -log(pmax(rest, 1e-300)), Inf)
}

.independent <- function(law, bare) {
  most <- max(abs(bare))
  if (most == 0) return(list(error = 0))
  share <- round(abs(bare) / most * 1e12)
  parts <- split(share[share > 0], law$which[share > 0])
  parts <- lapply(names(parts), function(k) {
    times <- table(parts[[k]])
    list(k = as.integer(k), size = as.numeric(names(times)) / 1e12 * most * law$unit, times = as.numeric(times))
  })
  total <- function(one) sum(vapply(parts, one, 0))
  phi <- function(x) vapply(x, function(w) exp(total(function(p) sum(p$times * log(.wave(law, p$k, w * p$size))))), 0)
  list(error = sqrt(total(function(p) sum(p$times * p$size^2) * law$variance[p$k])), phi = phi, fallen = phi,
       lattice = law$integer, normal = law$kind == "normal", leaves = unlist(lapply(parts, function(p) p$size)),
       tilted = function(t) total(function(p) sum(p$times * .tilted(law, p$k, t * p$size))))
}

.proved <- function(sum, tail, blur = 0) {
  if (sum$error == 0) return(0)
  golden <- (sqrt(5) - 1) / 2
  ends <- c(sum$error, max(abs(sum$leaves)))
  low <- log(1e-3 / max(ends))
  high <- log(1e3 / min(ends))
  limit <- function(place) ((exp(place) * blur)^2 / 2 + sum$tilted(exp(place)) - log(tail)) / exp(place)
  inner <- c(high - (high - low) * golden, low + (high - low) * golden)
  limits <- c(limit(inner[1]), limit(inner[2]))
  best <- min(limits)
  while (high - low > 0.05) {
    if (limits[1] <= limits[2]) {
      high <- inner[2]
      inner <- c(high - (high - low) * golden, inner[1])
      limits <- c(limit(inner[1]), limits[1])
    } else {
      low <- inner[1]
      inner <- c(inner[2], low + (high - low) * golden)
      limits <- c(limits[2], limit(inner[2]))
    }
    best <- min(best, limits)
  }
  best
}

.around <- function(sum, tail, blur = 0) {
  .proved(sum, (1 - 2e-3) * tail, blur) + .proved(sum, 1e-3 * tail / 2, blur)
}

.far <- function(sum, tail) {
  if (sum$error == 0) return(0)
  if (isTRUE(sum$normal)) return(sum$error * stats::qnorm(1 - tail))
  if (!is.null(sum$errors)) return(.reach(abs(sum$errors), tail))
  found <- .least(sum, tail)
  if (is.null(found)) found <- .wide(sum, tail)
  if (is.null(found)) stop("so rare an error cannot be computed here: ask Python", call. = FALSE) else found
}

# A limit that so many simulated |e| keep but for 2·tail of the time: so few do once in 1,000,000 times.
.reach <- function(sizes, tail) {
  rank <- stats::qbinom(1e-6, length(sizes), 1 - 2 * tail, lower.tail = FALSE) + 1
  if (rank > length(sizes)) stop("so rare an error cannot be computed here: ask Python", call. = FALSE)
  sort(sizes)[rank]
}

.least <- function(sum, tail) {
  sizes <- sort(unique(abs(sum$leaves[sum$leaves != 0])))
  step <- sizes[1]
  if (tail < 1e-8 || !sum$lattice || any(abs(sizes / step - round(sizes / step)) > 1e-9)) return(NULL)
  falls <- sizes[length(sizes)] - step <= 1e-9 * step
  around <- .around(sum, tail)
  half <- ceiling(around / step / 2)
  if (!is.finite(around) || (!falls && half > 240)) return(NULL)
  base <- 2 * pi / ((2 * half + 1) * step)
  terms <- numeric()
  while (length(terms) < half) {
    if (falls && length(terms) && abs(terms[length(terms)]) < 1e-4 * tail) {
      if (sum$fallen(base * length(terms)) < 1e-4 * tail) break
      falls <- FALSE
    }
    if (length(terms) >= 240) return(NULL)
    terms <- c(terms, sum$phi(base * seq(length(terms) + 1, min(length(terms) + 16, half))))
  }
  turns <- seq_along(terms) * pi / (2 * half + 1)
  inside <- function(places) ((2 * places + 1) + 2 * sum(terms / sin(turns) * sin((2 * places + 1) * turns))) / (2 * half + 1)
  low <- -1
  high <- half
  while (high - low > 1) {
    middle <- (low + high) %/% 2
    if (1 - inside(middle) <= (2 - 2e-3) * tail) high <- middle else low <- middle
  }
  high * step
}

.wide <- function(sum, tail) {
  if (sum$error == 0) return(0)
  blur <- sum$error / (if (is.null(sum$blur)) 60 else sum$blur)
  around <- .around(sum, 0.83 * tail, blur)
  count <- ceiling(sqrt(-2 * log(1e-4 * tail)) / (blur * 2 * pi / around))
  if (tail < 1e-8 || !is.finite(around) || count > 2000) return(NULL)
  x <- 2 * pi / around * seq_len(count)
  terms <- sum$phi(x) * exp(-(x * blur)^2 / 2) / x
  beyond <- function(q) 1 - (2 * q + 4 * sum(terms * sin(x * q))) / around
  min(vapply(seq(1, 4, 0.25), function(margin) {
    allowed <- (2 - 1e-3) * tail * stats::pnorm(margin)
    low <- 0
    high <- around / 2
    for (n in seq_len(60)) if (beyond(middle <- (low + high) / 2) > allowed) low <- middle else high <- middle
    margin * blur + (low + high) / 2
  }, 0))
}

# Whole noise given that a tree adds up: messages from the leaves on, each on a circle of its own.
.tree <- function(law) {
  rows <- split(seq_along(law$rows$at), law$rows$row)
  outputs <- length(law$which)
  count <- outputs
  parent <- rep(0, outputs + length(rows))
  exact <- rep(FALSE, outputs + length(rows))
  for (entries in rows) {
    some <- law$rows$at[entries]
    if (length(some) == 1) {
      exact[some] <- TRUE
      next
    }
    signs <- law$rows$sign[entries]
    owner <- some[signs > 0 & any(signs < 0)]
    if (!length(owner)) {
      owner <- count <- count + 1
      exact[owner] <- TRUE
    }
    parent[setdiff(some, owner)] <- owner
  }
  parent <- parent[seq_len(count)]
  exact <- exact[seq_len(count)]
  children <- lapply(seq_len(count), function(v) integer())
  below <- split(seq_len(count), factor(parent, levels = 0:count))
  for (v in seq_len(count)) children[[v]] <- below[[v + 1]]
  order <- below[[1]]
  i <- 1
  while (i <= length(order)) {
    order <- c(order, children[[order[i]]])
    i <- i + 1
  }
  inner <- lengths(children) > 0
  kind <- c(law$which, rep(NA, count - outputs))
  variance <- ifelse(is.na(kind), Inf, law$variance[kind])
  variance[is.na(variance)] <- Inf
  own <- spread <- widest <- length_of <- numeric(count)
  for (v in rev(order)) {
    deviation <- sqrt(variance[v])
    tail <- if (law$gaussian) 9 * deviation + 2 else 26 * deviation + 4
    sums <- if (inner[v]) 9 * sqrt(sum(spread[children[[v]]])) + max(widest[children[[v]]]) + 2 else Inf
    own[v] <- if (exact[v]) 0 else ceiling(min(tail, sums))
    if (inner[v]) length_of[v] <- 2^ceiling(log2(max(16, own[v] + sums + 1, 2 * own[v] + 1)))
    spread[v] <- if (exact[v]) 0 else min(variance[v], if (inner[v]) sum(spread[children[[v]]]) else Inf)
    widest[v] <- own[v]
  }
  weight <- function(v, t) {
    if (exact[v]) return(as.numeric(t == 0))
    if (!is.finite(variance[v])) return(rep(1, length(t)))
    if (law$gaussian) exp(-t^2 / (2 * law$parameter[kind[v]])) else exp(-abs(t) / law$parameter[kind[v]])
  }
  places <- function(v) seq(-own[v], own[v])
  angles <- function(size) {
    k <- seq_len(size) - 1
    2 * pi * ifelse(k > size / 2, k - size, k) / size
  }
  spectrum <- function(v, size, sums, x, slope) {
    if (!inner[v]) return(if (exact[v]) rep(1, size) else .wave(law, kind[v], angles(size) + x * slope))
    t <- places(v)
    values <- sums[t %% length(sums) + 1] * weight(v, t) * exp(1i * x * slope * t)
    around <- complex(size)
    for (j in seq_along(t)) around[t[j] %% size + 1] <- around[t[j] %% size + 1] + values[j]
    Re(stats::fft(around, inverse = TRUE))
  }
  flat <- vector("list", count)
  norm <- numeric(count)
  flat_spectrum <- function(v, size) spectrum(v, size, flat[[v]], 0, 0) / (if (inner[v]) norm[v] else 1)
  joined <- function(v, slopes, one) {
    some <- children[[v]]
    key <- ifelse(inner[some], paste("n", some), paste(ifelse(exact[some], 0, kind[some]), slopes[some]))
    product <- rep(1, length_of[v])
    for (group in split(some, key)) product <- product * one(group[1])^length(group)
    stats::fft(product) / length_of[v]
  }
  for (v in rev(order)) {
    if (!inner[v]) next
    flat[[v]] <- joined(v, numeric(count), function(c) flat_spectrum(c, length_of[v]))
    norm[v] <- sum(weight(v, places(v)) * Re(flat[[v]])[places(v) %% length_of[v] + 1])
  }
  prepared <- function(weights) {
    weights <- c(weights, rep(0, count - length(weights)))
    slope <- weights
    common <- numeric(count)
    bends <- rep(FALSE, count)
    for (v in rev(order)) {
      if (!inner[v]) next
      all <- sort(slope[children[[v]]])
      common[v] <- all[length(all) %/% 2 + 1]
      slope[v] <- slope[v] + common[v]
      bends[v] <- all[1] != all[length(all)] || any(bends[children[[v]]])
    }
    rest <- ifelse(parent > 0, slope - common[pmax(parent, 1)], 0)
    tops <- order[parent[order] == 0]
    tops <- tops[bends[tops] | (slope[tops] != 0 & !exact[tops])]
    function(x) vapply(x, function(w) {
      known <- flat
      for (v in rev(order[bends[order]])) {
        known[[v]] <- joined(v, rest, function(c) {
          if (!bends[c] && rest[c] == 0) return(flat_spectrum(c, length_of[v]))
          spectrum(c, length_of[v], known[[c]], w, rest[c]) / (if (inner[c]) norm[c] else 1)
        })
      }
      found <- 1
      for (v in tops) {
        t <- places(v)
        found <- found * (if (!inner[v]) .wave(law, kind[v], w * slope[v])
          else sum(Re(known[[v]][t %% length_of[v] + 1] * exp(1i * w * slope[v] * t)) * weight(v, t)) / norm[v])
      }
      found
    }, 0)
  }
  leaves_of <- function(weights) {
    found <- c(weights, rep(0, count - length(weights)))
    for (v in order) found[v] <- if (exact[v]) 0 else found[v] + (if (parent[v] > 0) found[parent[v]] else 0)
    ifelse(inner, 0, found)
  }
  # At least log E e^{ts}: where all below agree it has at most what its own law has, and what its children have.
  tilted <- function(leaves) {
    agreed <- leaves
    for (v in rev(order)) if (inner[v]) agreed[v] <- if (length(unique(agreed[children[[v]]])) == 1) agreed[children[[v]][1]] else NA
    some <- which(!is.na(agreed) & agreed != 0 & (parent == 0 | is.na(agreed[pmax(parent, 1)])))
    of <- function(v, slope) {
      if (exact[v]) return(0)
      below <- if (inner[v]) sum(vapply(children[[v]], of, 0, slope = slope)) else Inf
      min(below, if (is.finite(variance[v])) .tilted(law, kind[v], slope) else Inf)
    }
    function(t) sum(vapply(some, function(v) of(v, t * agreed[v]), 0))
  }
  function(weights) {
    leaves <- leaves_of(weights)
    if (all(leaves == 0)) return(list(error = 0))
    phi <- prepared(weights)
    of <- function(rough) {
      x <- 0.045 / sqrt(rough) * 1:6
      row <- 2 * (1 - phi(x)) / x^2
      for (j in 1:5) row <- (x[(1 + j):6]^2 * row[-length(row)] - x[1:(6 - j)]^2 * row[-1]) / (x[(1 + j):6]^2 - x[1:(6 - j)]^2)
      row
    }
    rough <- sum(leaves^2 * ifelse(is.finite(variance) & !exact, variance, 1) * (leaves != 0))
    found <- of(rough)
    for (n in 1:3) if (rough > 1.5 * found && found > 0) {
      rough <- found
      found <- of(rough)
    }
    error <- sqrt(max(found, 0))
    unsigned <- if (any(leaves < 0) && any(leaves > 0)) prepared(abs(leaves)) else phi
    list(error = error, phi = phi, fallen = unsigned, lattice = TRUE, leaves = leaves, blur = 12, tilted = tilted(leaves))
  }
}

# --- JSON in base R: enough for certificates and data packages -------------------------------------------------------

holdfast_json <- function(path) .json(paste(readLines(path, encoding = "UTF-8", warn = FALSE), collapse = "\n"))

.json <- function(text) {
  # Texts, numbers, words and signs, one after the other; what is between them is space.
  pattern <- '"(?:[^"\\\\]|\\\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[][{}:,]'
  tokens <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1]]
  at <- 0L
  following <- function() {
    at <<- at + 1L
    tokens[at]
  }
  value <- function(token) {
    if (token == "{") {
      found <- list()
      token <- following()
      while (token != "}") {
        if (token == ",") token <- following()
        name <- .json_text(token)
        following() # the colon
        one <- value(following())
        if (is.null(one)) found[name] <- list(NULL) else found[[name]] <- one
        token <- following()
      }
      return(found)
    }
    if (token == "[") {
      found <- list()
      token <- following()
      while (token != "]") {
        if (token == ",") token <- following()
        one <- value(token)
        if (is.null(one)) found[length(found) + 1] <- list(NULL) else found[[length(found) + 1]] <- one
        token <- following()
      }
      return(found)
    }
    if (substr(token, 1, 1) == '"') return(.json_text(token))
    switch(token, true = TRUE, false = FALSE, null = NULL, as.numeric(token))
  }
  value(following())
}

.json_text <- function(token) {
  text <- substr(token, 2, nchar(token) - 1)
  if (!grepl("\\", text, fixed = TRUE)) return(text)
  parts <- regmatches(text, gregexpr("\\\\u[0-9a-fA-F]{4}|\\\\.|[^\\\\]+", text, perl = TRUE))[[1]]
  plain <- c("\\n" = "\n", "\\t" = "\t", "\\r" = "\r", "\\b" = "\b", "\\f" = "\f")
  made <- vapply(parts, function(part) {
    if (substr(part, 1, 1) != "\\") return(part)
    if (substr(part, 2, 2) == "u") return(intToUtf8(strtoi(substr(part, 3, 6), 16L)))
    if (part %in% names(plain)) return(plain[[part]])
    substr(part, 2, 2)
  }, "")
  paste(made, collapse = "")
}
