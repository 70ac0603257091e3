"""How every page prints: its content alone, on white, nothing cut off."""

STYLE = """<style>
@media print {
  [data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stToolbar"],
  [data-testid="stExpandSidebarButton"], .stDownloadButton, .stButton { display: none; }
  html, body, .stApp, [data-testid="stAppViewContainer"], [data-testid="stMain"], section.main {
    position: static !important; height: auto !important; overflow: visible !important;
    background: #fff !important; color: #000 !important;
  }
  [data-testid="stMainBlockContainer"] { padding: 0 !important; max-width: none !important; }
  [data-testid="stElementContainer"] { break-inside: avoid; }
}
</style>"""
