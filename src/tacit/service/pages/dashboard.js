// Replaces the numbers every two seconds while the page is looked at.
const numbers = document.getElementById("numbers");
if (numbers) {
  const refresh = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(numbers.dataset.source, { credentials: "same-origin" });
      if (answer.status === 401) location.assign(document.body.dataset.home);
      if (answer.ok) numbers.innerHTML = await answer.text();
    } catch {
      // The service is away; the next turn asks again.
    }
  };
  setInterval(refresh, 2000);
}
