# Fit dppca: Rscript dppca.R pc_dir.R ROWS.csv DELTA FITS KS EPSILONS, with commas in the last two.
# Each line of output holds k, epsilon, the CPU seconds of one fit, and the components.
words <- commandArgs(TRUE)
source(words[1])
rows <- as.matrix(read.csv(words[2], header = FALSE))
numbers <- function(text) as.numeric(strsplit(text, ",")[[1]])
once <- system.time(matrix <- tau_sph(rows))[["user.self"]]
# The matrix before the noise depends on the rows alone, so compute it once and charge it each time.
tau_sph <- function(...) matrix
for (k in numbers(words[5])) for (epsilon in numbers(words[6])) for (seed in seq_len(words[4])) {
  set.seed(seed)
  more <- system.time(V <- dp_pc_dir(rows, k, center = FALSE, g_dppca = TRUE, eps = epsilon,
                                     delta = as.numeric(words[3])))[["user.self"]]
  cat(k, epsilon, once + more, V, "\n")
}
